// Names of models and providers, used or offered by agents of the organization, as suggestions.
import { useMemo } from 'react'
import { graphql } from '../api/graphql'
import { useLive } from '../api/use-live'
import { useOrg } from './organization'

/** The providers whose addresses the service knows; others are reached at an address of their own. */
export const PROVIDERS = ['anthropic', 'openai']

const ModelsQuery = graphql(`
  query KnownModels($orgId: Id!) {
    agentFeed(orgId: $orgId, limit: 200) { data { id resolvedModel offeredModels { id } } }
  }
`)

export function useModels(): string[] {
  const { id: orgId } = useOrg()
  const { data } = useLive({ query: ModelsQuery, variables: { orgId }, on: [] })
  return useMemo(() => {
    const found = (data?.agentFeed?.data ?? []).flatMap(({ resolvedModel, offeredModels }) => [
      ...(resolvedModel ? [resolvedModel] : []),
      ...(offeredModels ?? []).map(({ id }) => id),
    ])
    return [...new Set(found)].sort()
  }, [data])
}
