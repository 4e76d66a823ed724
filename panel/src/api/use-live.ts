// Keeps what was read up to date: the query runs again when something that it depends on changes.
import type { AnyVariables, CombinedError, TypedDocumentNode } from '@urql/core'
import { useCallback, useEffect, useRef } from 'react'
import { useClient, useQuery } from 'urql'
import { isSignedOut, isUnanswered } from './errors'
import { concerns, type Interest, onChange, paced } from './live'
import { readAnew } from './requests'

/** Changes come in bursts; a view is read again at most this often. */
const GAP_MS = 250

export interface Live<Data> {
  data: Data | undefined
  error: CombinedError | undefined
  /** There is nothing to show yet. Otherwise content stays while it is read again. */
  loading: boolean
  refetch: () => void
}

interface Options<Data, Variables extends AnyVariables> {
  query: TypedDocumentNode<Data, Variables>
  variables: Variables
  /** Kinds of records, or a test: what makes this be read again. */
  on: Interest
  pause?: boolean
}

/** The records of a query, always as they are now. */
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
    // The answer goes into the cache, and from there to everybody who shows these records.
    const read = async () => {
      const { error } = await readAnew(client, query, variables)
      return !isUnanswered(error)
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
  // While other variables are asked for, urql still has the error of those before.
  const settled = useRef('')
  if (!state.fetching) settled.current = key
  const error = settled.current === key ? state.error : undefined
  const data = useDraft(state.data, state.fetching || isAway(state.error), client, query, key)
  return { data, error, loading: !data && !error && !pause, refetch }
}

const isAway = (error: CombinedError | undefined) => isUnanswered(error) || isSignedOut(error)

/**
 * What was shown stays while it is read again, because the cache has lost a part of it, and while the service is away or
 * the session has ended. What was refused goes.
 */
function useDraft<Data>(data: Data | undefined, stays: boolean, ...asked: unknown[]): Data | undefined {
  const kept = useRef<{ asked: unknown[]; data: Data }>(undefined)
  if (data) kept.current = { asked, data }
  const isSame = kept.current?.asked.every((part, at) => part === asked[at])
  return data ?? (isSame && stays ? kept.current?.data : undefined)
}
