// The user's unsent messages. They show at once; a refused one stays with the reason and can be sent again as the same
// request, so that it is never posted twice. Kept outside React and in browser storage: leaving the page loses nothing,
// and reloading it loses only the files.
import type { Client } from '@urql/core'
import { useEffect, useSyncExternalStore } from 'react'
import { onClient } from '../../../api/current-client'
import { isRetryable, problemOf, wordsOf } from '../../../api/errors'
import { graphql } from '../../../api/graphql'
import { resync } from '../../../api/live'
import { once, randomKey } from '../../../api/use-act'
import { draftOf, draftsOwner, saveDraft } from '../../../app/drafts'
import { MessageFields, type MessageRecord } from '../../../app/thread/fields'
import { read, storageKey, unsentReason, write } from './unsent'
import { type Upload, upload } from './uploads'

export interface Pending {
  key: string
  /** The author. */
  person: number
  orgId: number
  conversationId: number
  text: string
  files: Upload[]
  state: 'sending' | 'failed'
  /** Why it was refused. */
  problem?: string
  createdAt: string
}

const Post = graphql(
  `
    mutation PostMessage($orgId: Id!, $conversationId: Id!, $input: PostMessageInput!) {
      postMessage(orgId: $orgId, conversationId: $conversationId, input: $input) { ...MessageFields }
    }
  `,
  [MessageFields],
)

let pending: Pending[] = []
/** Keys of all messages this tab has had: other stored messages belong to other tabs. */
const known = new Set<string>()
const listeners = new Set<() => void>()
const sent = new Set<(message: MessageRecord, conversationId: number) => void>()

function set(next: Pending[]): void {
  pending = next
  for (const each of next) known.add(storageKey(each))
  for (const listener of listeners) listener()
}

const takenUp = new Set<string>()

// The next user must not send these messages. Their author finds the stored ones after signing in again.
onClient(() => {
  takenUp.clear()
  known.clear()
  set([])
})

function change(key: string, part: Partial<Pending>): void {
  const changed = pending.find((each) => each.key === key)
  set(pending.map((each) => (each.key === key ? { ...each, ...part } : each)))
  if (changed) storeUnsent(changed)
}

/** The draft place of a conversation's composer. */
export const draftPlace = (conversationId: number) => `conversation.${conversationId}`
const unsentPlace = (conversationId: number) => `unsent.${conversationId}`
const isOf = (orgId: number, conversationId: number) => (each: Pending) =>
  each.person === draftsOwner() && each.orgId === orgId && each.conversationId === conversationId

/** Stores the refused messages; with `all`, also those that are unanswered. */
function storeUnsent({ orgId, conversationId }: Pending, all = false): void {
  const mine = pending.filter(isOf(orgId, conversationId))
  const place = unsentPlace(conversationId)
  const others = read(draftOf(orgId, place)).filter(({ key }) => !known.has(key))
  saveDraft(orgId, place, write([...others, ...mine.filter(({ state }) => all || state === 'failed')]))
}

/** Loads the messages that an earlier page stored, once. */
function restoreUnsent(orgId: number, conversationId: number): void {
  const place = `${draftsOwner()} ${orgId} ${conversationId}`
  if (takenUp.has(place)) return
  takenUp.add(place)
  const back = read(draftOf(orgId, unsentPlace(conversationId))).map((each) => ({
    ...each,
    person: draftsOwner(),
    orgId,
    conversationId,
    files: [],
    state: 'failed' as const,
    problem: unsentReason(each.files),
  }))
  if (back.length > 0) set([...back, ...pending])
}

/** Calls back with each accepted message. */
export function onSent(listener: (message: MessageRecord, conversationId: number) => void): () => void {
  sent.add(listener)
  return () => sent.delete(listener)
}

export function post(
  client: Client,
  orgId: number,
  conversationId: number,
  text: string,
  files: Upload[],
): void {
  const made: Pending = {
    key: randomKey(),
    person: draftsOwner(),
    orgId,
    conversationId,
    text: text.trim() || files.map(({ name }) => name).join(', '),
    files,
    state: 'sending',
    createdAt: new Date().toISOString(),
  }
  set([...pending, made])
  void send(client, orgId, made.key)
}

export function sendAgain(client: Client, orgId: number, key: string): void {
  if (pending.find((each) => each.key === key)?.state !== 'failed') return
  change(key, { state: 'sending', problem: undefined })
  void send(client, orgId, key)
}

/** Removes a refused message and returns it for editing. */
export function discard(key: string): Pending | undefined {
  const found = pending.find((each) => each.key === key)
  set(pending.filter((each) => each.key !== key))
  if (found) storeUnsent(found)
  return found
}

async function send(client: Client, orgId: number, key: string): Promise<void> {
  const found = pending.find((each) => each.key === key)
  if (!found) return
  const { conversationId, text, files } = found
  try {
    for (const file of files) {
      if (found.person !== draftsOwner()) return
      file.id ??= await upload(orgId, file)
    }
  } catch (error) {
    return change(key, {
      state: 'failed',
      problem: error instanceof Error ? error.message : 'A file was not accepted.',
    })
  }
  const attachmentIds = files.flatMap(({ id }) => (id === undefined ? [] : [id]))
  // Typed text is plain: it contains no markup.
  const input = { text, format: 'plain' as const, ...(attachmentIds.length > 0 ? { attachmentIds } : {}) }
  const { data, error } = await client.mutation(Post, { orgId, conversationId, input }, once(key)).toPromise()
  const message = data?.postMessage
  const code = problemOf(error)?.code
  if (message) {
    discard(key)
    for (const listener of sent) listener(message, conversationId)
  } else if (code === 'IDEMPOTENCY_IN_DOUBT') {
    // An earlier attempt posted it and only the answer was lost: the message arrives like any other.
    discard(key)
    resync()
  } else if (code === 'IDEMPOTENCY_IN_PROGRESS') {
    change(key, { state: 'failed', problem: 'An earlier attempt is still under way. Try again in a moment.' })
  } else {
    // A refused message may be sent again as a new request. If the outcome is unknown, the key stays.
    change(key, {
      state: 'failed',
      problem: wordsOf(error),
      ...(isRetryable(error) ? {} : { key: randomKey() }),
    })
  }
}

const subscribe = (listener: () => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
let cached: { all: Pending[]; id: number; mine: Pending[] } = { all: [], id: 0, mine: [] }

export function usePending(orgId: number, conversationId: number): Pending[] {
  useEffect(() => restoreUnsent(orgId, conversationId), [orgId, conversationId])
  return useSyncExternalStore(subscribe, () => {
    if (cached.all !== pending || cached.id !== conversationId) {
      cached = { all: pending, id: conversationId, mine: pending.filter(isOf(orgId, conversationId)) }
    }
    return cached.mine
  })
}

if (typeof window !== 'undefined') {
  window.addEventListener('beforeunload', (event) => {
    if (pending.some(({ state }) => state === 'sending')) event.preventDefault()
  })
  window.addEventListener('pagehide', () => {
    for (const each of pending)
      if (each.state === 'sending' && each.person === draftsOwner()) storeUnsent(each, true)
  })
}
