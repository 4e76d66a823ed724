// Changes by others: one `changes` subscription for the current organization. It names records; views that show them
// read them again. Whenever the service starts sending changes, also after a lost connection, it sends RESYNC first. No
// React here.
import type { Client } from '@urql/core'
import { graphql, type ResultOf } from './graphql'
import { listen, RETRY_MS } from './listen'

const Changes = graphql(`
  subscription Changes($orgId: Id!) {
    changes(orgId: $orgId) { kind id op }
  }
`)

export type Change = ResultOf<typeof Changes>['changes']
export type Kind = NonNullable<Change['kind']>

/** The changes a view depends on: kinds of records, or its own test. */
export type Interest = Kind[] | ((change: Change) => boolean)

const RESYNC: Change = { kind: null, id: null, op: 'RESYNC' }
const listeners = new Set<(change: Change) => void>()

/**
 * Follows an organization until the returned function is called. The shell does this once. Users who lose access
 * learn why when their views reload: no further event arrives.
 */
export function follow(client: Client, orgId: number): () => void {
  return listen(client, Changes, { orgId }, ({ changes }) => tell(changes), resync)
}

/** Calls back for each change that concerns a view. A RESYNC concerns all. */
export function onChange(interest: Interest, listener: (change: Change) => void): () => void {
  const heard = (change: Change) => {
    if (concerns(interest, change)) listener(change)
  }
  listeners.add(heard)
  return () => listeners.delete(heard)
}

/** Makes all views reload: after signing in again, for example. */
export function resync(): void {
  tell(RESYNC)
}

export function concerns(interest: Interest, change: Change): boolean {
  if (change.op === 'RESYNC' || change.kind === null) return true
  return typeof interest === 'function' ? interest(change) : interest.includes(change.kind)
}

function tell(change: Change): void {
  for (const listener of [...listeners]) listener(change)
}

/**
 * Runs `work` now or as soon as allowed: never concurrently, at most once per `gap` milliseconds, and once more if
 * requested meanwhile, so that no change is lost. If it resolves to false, it runs again.
 */
export function paced(work: () => Promise<boolean>, gap: number): { ask: () => void; stop: () => void } {
  let running = false
  let again = false
  let stopped = false
  let timer: ReturnType<typeof setTimeout> | undefined
  const run = async () => {
    clearTimeout(timer)
    running = true
    again = false
    let isDone = false
    try {
      isDone = await work()
    } finally {
      timer = setTimeout(() => {
        running = false
        if (stopped) return
        if (again) void run()
        else if (!isDone) timer = setTimeout(run, RETRY_MS)
      }, gap)
    }
  }
  return {
    ask: () => {
      if (running) again = true
      else if (!stopped) void run()
    },
    stop: () => {
      stopped = true
      clearTimeout(timer)
    },
  }
}
