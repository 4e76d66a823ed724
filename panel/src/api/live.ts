// What others change: one `changes` subscription for the organization that is shown. It names records; anyone who shows
// them reads them again. Whenever the service begins to send changes, also after a lost connection, it says RESYNC
// first. No React here.
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

/** What a view depends on: kinds of records, or a test of its own. */
export type Interest = Kind[] | ((change: Change) => boolean)

const RESYNC: Change = { kind: null, id: null, op: 'RESYNC' }
const listeners = new Set<(change: Change) => void>()

/**
 * Follows an organization until the returned function is called. The shell does this, once. Anyone who no longer may
 * learns why from what is read again: nothing else comes.
 */
export function follow(client: Client, orgId: number): () => void {
  return listen(client, Changes, { orgId }, ({ changes }) => tell(changes), resync)
}

/** Calls back for each change that matters to a view. A RESYNC matters to all. */
export function onChange(interest: Interest, listener: (change: Change) => void): () => void {
  const heard = (change: Change) => {
    if (concerns(interest, change)) listener(change)
  }
  listeners.add(heard)
  return () => listeners.delete(heard)
}

/** Makes everything that is shown be read again: after signing in again, for example. */
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
 * Runs `work` now or as soon as it may: never twice at once, never more often than once in `gap` milliseconds, and
 * always once more if it was asked for meanwhile, so that no change is lost. Work that answers false is tried again.
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
