// Keeps a query up to date: it runs again when a record that it depends on changes.
import type { AnyVariables, CombinedError, TypedDocumentNode } from '@urql/core'
import { useCallback, useEffect, useRef } from 'react'
import { useClient, useQuery } from 'urql'
import { isRetryable, isSignedOut } from './errors'
import { concerns, type Interest, onChange, paced } from './live'
import { readFresh } from './requests'

/** Changes come in bursts; reload a view at most this often. */
const GAP_MS = 250

export interface Live<Data> {
  data: Data | undefined
  error: CombinedError | undefined
  /** There is nothing to show yet. Reloads keep the content. */
  loading: boolean
  refetch: () => void
}

interface Options<Data, Variables extends AnyVariables> {
  query: TypedDocumentNode<Data, Variables>
  variables: Variables
  /** Kinds of records, or a test: these changes trigger a reload. */
  on: Interest
  pause?: boolean
}

/** The current result of a query. */
export function useLive<Data, Variables extends AnyVariables>(options: Options<Data, Variables>): Live<Data> {
  const { query, variables, pause = false } = options
  const client = useClient()
  const [state] = useQuery<Data, Variables>({ query, variables, pause } as never)
  const interest = useRef(options.on)
  interest.current = options.on
  const ask = useRef<() => void>(() => {})
  const key = JSON.stringify(variables)

  // biome-ignore lint/correctness/useExhaustiveDependencies: `key` stands for the variables
  useEffect(() => {
    if (pause) return
    // The answer updates the cache, and thereby every view of these records.
    const read = async () => {
      const { error } = await readFresh(client, query, variables)
      return !isRetryable(error)
    }
    const pace = paced(read, GAP_MS)
    ask.current = pace.ask
    const stop = onChange((change) => concerns(interest.current, change), pace.ask)
    return () => {
      stop()
      pace.stop()
    }
  }, [client, query, key, pause])

  const refetch = useCallback(() => ask.current(), [])
  // While new variables load, urql still has the previous error.
  const settled = useRef('')
  if (!state.fetching) settled.current = key
  const error = settled.current === key ? state.error : undefined
  const data = useLastContent(state.data, state.fetching || isAway(state.error), client, query, key)
  return { data, error, loading: !data && !error && !pause, refetch }
}

const isAway = (error: CombinedError | undefined) => isRetryable(error) || isSignedOut(error)

/**
 * Keeps the content while it reloads because the cache lost a part of it, while the service is down, and after the
 * session ended. Refused content is removed.
 */
function useLastContent<Data>(data: Data | undefined, stays: boolean, ...asked: unknown[]): Data | undefined {
  const kept = useRef<{ asked: unknown[]; data: Data }>(undefined)
  if (data) kept.current = { asked, data }
  const isSame = kept.current?.asked.every((part, at) => part === asked[at])
  return data ?? (isSame && stays ? kept.current?.data : undefined)
}
