// Decisions being sent. A decision that could be a slip is delayed by five seconds, in which it can be cancelled; a
// held one is sent at once. Kept outside React, so that navigation neither loses nor repeats a decision. Decisions end
// with the decider's client: no one else sends them.
import type { Client } from '@urql/core'
import { useSyncExternalStore } from 'react'
import { onClient } from '../../api/current-client'
import { problemOf, wordsOf } from '../../api/errors'
import { graphql } from '../../api/graphql'
import { readFresh } from '../../api/requests'
import { once, randomKey } from '../../api/use-act'
import { saveDraft } from '../drafts'
import { ApprovalFields, ApprovalQuery } from './fields'

/** The draft place for an approval's comment, kept until the decision is accepted. */
export const draftPlace = (id: number) => `approval.${id}`
/** The draft place for a question's selected options. */
export const choicePlace = (id: number) => `approval.${id}.choice`

/** Deletes the comment and the selected options of a decided approval. */
export function forgetDraft(orgId: number, id: number): void {
  saveDraft(orgId, draftPlace(id), '')
  saveDraft(orgId, choicePlace(id), '')
}

/** How long a decision can be cancelled. */
export const DELAY_MS = 5_000

export type Decision =
  | { how: 'ANSWER'; options: string[]; text?: string; said: string }
  | { how: 'RESOLVE' | 'DISMISS'; comment?: string; said: string }

export interface Sending {
  decision: Decision
  state: 'waiting' | 'sending' | 'failed' | 'late'
  /** The time at which it is sent. */
  dueAt: number
  /** Why it was refused. */
  problem?: string
}

const Answer = graphql(
  `
    mutation AnswerApproval($orgId: Id!, $id: Id!, $input: AnswerApprovalInput!) {
      answerApproval(orgId: $orgId, id: $id, input: $input) { ...ApprovalFields }
    }
  `,
  [ApprovalFields],
)
const Resolve = graphql(
  `
    mutation ResolveApproval($orgId: Id!, $id: Id!, $comment: String) {
      resolveApproval(orgId: $orgId, id: $id, comment: $comment) { ...ApprovalFields }
    }
  `,
  [ApprovalFields],
)
const Dismiss = graphql(
  `
    mutation DismissApproval($orgId: Id!, $id: Id!, $comment: String) {
      dismissApproval(orgId: $orgId, id: $id, comment: $comment) { ...ApprovalFields }
    }
  `,
  [ApprovalFields],
)

interface Entry {
  sending: Sending
  key: string
  timer?: ReturnType<typeof setTimeout>
}

/** Ordered by when each entered its state. */
const entries = new Map<number, Entry>()
const listeners = new Set<() => void>()

function put(id: number, entry: Entry | null): void {
  entries.delete(id)
  if (entry) entries.set(id, entry)
  for (const listener of listeners) listener()
}

onClient(() => {
  for (const [id, { timer }] of entries) {
    clearTimeout(timer)
    put(id, null)
  }
})

let last: { id: number; at: number } | null = null

/** When an approval other than this was last decided, by `performance.now()`. */
export const otherDecidedAt = (id: number): number | null => (last && last.id !== id ? last.at : null)

/** Decides now or after the delay. Ignored while a decision on the same approval is pending. */
export function decide(client: Client, orgId: number, id: number, decision: Decision, delay: number): void {
  const before = entries.get(id)
  if (before && before.sending.state !== 'failed') return
  last = { id, at: performance.now() }
  const entry: Entry = {
    sending: { decision, state: 'waiting', dueAt: Date.now() + delay },
    key: randomKey(),
  }
  const go = () => void send(client, orgId, id, entry)
  if (delay > 0) {
    entry.timer = setTimeout(go, delay)
    put(id, entry)
  } else go()
}

/** Cancels a decision that was not sent yet, or dismisses a refused one. */
export function cancelDecision(id: number): void {
  const entry = entries.get(id)
  if (!entry || entry.sending.state === 'sending') return
  clearTimeout(entry.timer)
  put(id, null)
}

/** Cancels a decision that was not sent yet. */
function cancelWaiting(id: number): void {
  if (entries.get(id)?.sending.state === 'waiting') cancelDecision(id)
}

/** Cancels all decisions that were not sent yet. */
export function cancelAll(): void {
  for (const id of [...entries.keys()]) cancelWaiting(id)
}

/** Sends an unanswered decision again as the same request: it can't count twice. */
export function retryDecision(client: Client, orgId: number, id: number): void {
  const entry = entries.get(id)
  if (entry?.sending.state === 'failed') void send(client, orgId, id, entry)
}

async function send(client: Client, orgId: number, id: number, { sending, key }: Entry): Promise<void> {
  const { decision } = sending
  put(id, { sending: { ...sending, state: 'sending', problem: undefined }, key })
  const { error } = await request(client, orgId, id, decision, key)
  if (entries.get(id)?.key !== key) return
  if (!error) {
    forgetDraft(orgId, id)
    return put(id, null)
  }
  const late = problemOf(error)?.code === 'APPROVAL_NOT_PENDING' || problemOf(error)?.code === 'CONFLICT'
  // Someone else was faster: show the current record, which the refusal carries as well.
  if (late) await readFresh(client, ApprovalQuery, { orgId, id })
  if (entries.get(id)?.key !== key) return
  put(id, { sending: { ...sending, state: late ? 'late' : 'failed', problem: wordsOf(error) }, key })
}

function request(client: Client, orgId: number, id: number, decision: Decision, key: string) {
  switch (decision.how) {
    case 'ANSWER': {
      const input = { options: decision.options, text: decision.text || undefined }
      return client.mutation(Answer, { orgId, id, input }, once(key)).toPromise()
    }
    case 'RESOLVE':
      return client
        .mutation(Resolve, { orgId, id, comment: decision.comment || undefined }, once(key))
        .toPromise()
    case 'DISMISS':
      return client
        .mutation(Dismiss, { orgId, id, comment: decision.comment || undefined }, once(key))
        .toPromise()
  }
}

const subscribe = (listener: () => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** The pending decision on an approval. */
export function useSending(id: number): Sending | undefined {
  return useSyncExternalStore(subscribe, () => entries.get(id)?.sending)
}

export const isBeingSent = (id: number): boolean => entries.has(id)

// Closing the page would lose a delayed decision, so the browser asks first.
if (typeof window !== 'undefined') {
  window.addEventListener('beforeunload', (event) => {
    const open = [...entries.values()].some(({ sending }) => ['waiting', 'sending'].includes(sending.state))
    if (open) event.preventDefault()
  })
}
