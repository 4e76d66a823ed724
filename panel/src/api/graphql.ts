// Typed documents. `graphql(…)` knows the schema; a fragment stands beside the component that reads it.
import { initGraphQLTada } from 'gql.tada'
import type { introspection } from './schema'

export const graphql = initGraphQLTada<{
  introspection: introspection
  scalars: {
    CredentialKind: string
    Decimal: string
    Id: number
    JSON: Json
    Labels: Record<string, string>
    Permission: string
    SecretString: string
    Timestamp: string
  }
}>()

/** Any JSON value, as agents and integrations send it. */
export type Json = string | number | boolean | null | Json[] | { [key: string]: Json }

export type { FragmentOf, ResultOf, VariablesOf } from 'gql.tada'
export { readFragment } from 'gql.tada'
