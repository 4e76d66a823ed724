// Changes records: runs a mutation once, reports the outcome, and offers to undo it.
import type { AnyVariables, CombinedError, TypedDocumentNode } from '@urql/core'
import { useCallback, useState } from 'react'
import { useClient } from 'urql'
import { say, sayProblem } from '../ui/toast-store'
import { wordsOf } from './errors'

export interface ActOptions {
  /** The confirmation: "Archived Stripe key". None by default. */
  said?: string
  /** Undoes the change; the toast then has "Undo". */
  undo?: () => unknown
  /** The caller shows errors itself, at a field for example. */
  quiet?: boolean
  /** The idempotency key. A key is never executed twice; by default each call has its own. */
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

/** Returns a function that runs a mutation. `act.pending` while it runs. */
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

/** Runs functions one after another: for changes that first read what they change. */
export function queue(): <T>(act: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return (act) => {
    const next = last.then(act, act)
    last = next
    return next
  }
}

/** The context of a change that must happen once, even if the answer is lost and the browser sends it again. */
export function once(key: string = randomKey()) {
  return {
    fetchOptions: {
      credentials: 'same-origin' as const,
      headers: { accept: 'application/graphql-response+json, application/json', 'idempotency-key': key },
    },
  }
}

/** `crypto.randomUUID` is unavailable over plain HTTP on a local network. */
export function randomKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('')
}
