// The signed-in user, for every page.
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

/** The signed-in user. Not available on sign-in pages. */
export function useViewer(): Viewer {
  const viewer = useContext(ViewerContext)
  if (!viewer) throw new Error('useViewer needs a signed-in person')
  return viewer
}
