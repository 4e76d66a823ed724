// Changing records: runs a mutation once, says what came of it, and offers to take it back.
import type { AnyVariables, CombinedError, TypedDocumentNode } from '@urql/core'
import { useCallback, useState } from 'react'
import { useClient } from 'urql'
import { say, sayProblem } from '../ui/toast-store'
import { wordsOf } from './errors'

export interface ActOptions {
  /** What to say when it is done: "Archived Stripe key". Nothing is said without it. */
  said?: string
  /** Takes it back; the toast then has "Undo". */
  undo?: () => unknown
  /** The caller shows the refusal itself, at its field for example. */
  quiet?: boolean
  /** The key of the request. The same one is never carried out twice; without it each call is one of its own. */
  key?: string
}

export interface ActResult<Data> {
  data: Data | undefined
  error: CombinedError | undefined
}

export type Act<Data, Variables> = ((
  variables: Variables,
  options?: ActOptions,
) => Promise<ActResult<Data>>) & {
  pending: boolean
}

/** A function that runs a mutation. `act.pending` while it runs. */
export function useAct<Data, Variables extends AnyVariables>(
  document: TypedDocumentNode<Data, Variables>,
): Act<Data, Variables> {
  const client = useClient()
  const [running, setRunning] = useState(0)
  const act = useCallback(
    async (variables: Variables, { said, undo, quiet, key }: ActOptions = {}): Promise<ActResult<Data>> => {
      setRunning((count) => count + 1)
      try {
        const { data, error } = await client.mutation(document, variables, once(key)).toPromise()
        if (error && !quiet) sayProblem(wordsOf(error))
        if (!error && said) say(said, undo ? { undo } : undefined)
        return { data: error ? undefined : (data ?? undefined), error }
      } finally {
        setRunning((count) => count - 1)
      }
    },
    [client, document],
  )
  return Object.assign(act, { pending: running > 0 })
}

/** Runs what it is given one after the other: for changes that read first what they change. */
export function queue(): <T>(act: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return (act) => {
    const next = last.then(act, act)
    last = next
    return next
  }
}

/** The context of a change that must happen once, also if the answer is lost and the browser sends it again. */
export function once(key: string = randomKey()) {
  return {
    fetchOptions: {
      credentials: 'same-origin' as const,
      headers: { accept: 'application/graphql-response+json, application/json', 'idempotency-key': key },
    },
  }
}

/** `crypto.randomUUID` is missing on plain http in a local network. */
export function randomKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('')
}
