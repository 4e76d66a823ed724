// The image profiles, for pickers.
import { useMemo } from 'react'
import { graphql } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import type { Choice } from '../../ui/picker'

const ProfilesQuery = graphql(`
  query Profiles($orgId: Id!) { profiles(orgId: $orgId) { name title description } }
`)

export function useProfiles(): Choice[] {
  const { id: orgId } = useOrg()
  const { data } = useLive({ query: ProfilesQuery, variables: { orgId }, on: [] })
  return useMemo(
    () =>
      (data?.profiles ?? []).map(({ name, title, description }) => ({
        id: name,
        name: title,
        detail: description,
      })),
    [data],
  )
}

/** The profile of this name. A deleted one shows its name. */
export function choiceOfProfile(profiles: Choice[], name: string | null): Choice | null {
  if (name === null) return null
  return profiles.find(({ id }) => id === name) ?? { id: name, name }
}
