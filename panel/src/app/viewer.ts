// Who is signed in, as every page knows it.
import { createContext, useContext } from 'react'
import { graphql, type ResultOf } from '../api/graphql'

export const ViewerQuery = graphql(`
  query ShellViewer {
    viewer {
      preferences
      user { id name email emailConfirmed hasSecondFactor avatarUrl }
      memberships { organizationId organizationName role requiresSecondFactor }
    }
  }
`)

export type Viewer = NonNullable<ResultOf<typeof ViewerQuery>['viewer']>

export const ViewerContext = createContext<Viewer | null>(null)

/** Who is signed in. Not on the pages before. */
export function useViewer(): Viewer {
  const viewer = useContext(ViewerContext)
  if (!viewer) throw new Error('useViewer needs a signed-in person')
  return viewer
}
