// Typed documents. `graphql(…)` knows the schema; fragments are defined beside the component that reads them.
import { initGraphQLTada } from 'gql.tada'
import type { introspection } from './schema'

export const graphql = initGraphQLTada<{
  introspection: introspection
  scalars: {
    CredentialKind: string
    Decimal: string
    EventType: string
    Id: number
    JSON: Json
    Labels: Record<string, string>
    Permission: string
    SecretString: string
    Timestamp: string
  }
}>()

/** Any JSON value, as sent by agents and integrations. */
export type Json = string | number | boolean | null | Json[] | { [key: string]: Json }

export type { FragmentOf, ResultOf, VariablesOf } from 'gql.tada'
export { readFragment } from 'gql.tada'
