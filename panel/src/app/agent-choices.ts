// The servers and images an agent can use, for pickers.
import { useMemo } from 'react'
import { graphql } from '../api/graphql'
import { useLive } from '../api/use-live'
import type { Choice } from '../ui/picker'
import { stateOf } from '../ui/status'
import { useOrg } from './organization'

const ChoicesQuery = graphql(`
  query AgentChoices($orgId: Id!) {
    servers(orgId: $orgId, page: 1, limit: 200, sort: NAME) { data { id name status } }
    images(orgId: $orgId) { id name reference }
    organization(orgId: $orgId) { id defaultImage { id name } }
  }
`)

export interface AgentChoices {
  loading: boolean
  servers: Choice[]
  images: Choice[]
  /** The image an agent runs if none is selected. */
  defaultImage: { id: number; name: string } | null
}

export function useAgentChoices(): AgentChoices {
  const { id: orgId } = useOrg()
  const { data, loading } = useLive({
    query: ChoicesQuery,
    variables: { orgId },
    on: ['SERVER', 'IMAGE', 'ORGANIZATION'],
  })
  return useMemo(
    () => ({
      loading,
      servers: (data?.servers?.data ?? []).map(({ id, name, status }) => ({
        id,
        name,
        detail: stateOf('server', status).word,
      })),
      images: (data?.images ?? []).map(({ id, name, reference }) => ({ id, name, detail: reference })),
      defaultImage: data?.organization?.defaultImage ?? null,
    }),
    [data, loading],
  )
}
