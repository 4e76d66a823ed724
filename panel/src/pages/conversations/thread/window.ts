// The loaded part of a thread: consecutive messages, few enough for the page. Pure, tested.
import type { MessageRecord } from '../../../app/thread/fields'

/** The maximum number of messages on the page, and the service's maximum page size. */
export const MAX_MESSAGES = 200

export interface Window {
  /** In order, without gaps. */
  messages: MessageRecord[]
  hasBefore: boolean
  hasAfter: boolean
}

export const EMPTY: Window = { messages: [], hasBefore: false, hasAfter: false }

interface Page {
  data: readonly MessageRecord[]
  hasBefore: boolean
  hasAfter: boolean
}

export const firstSeq = ({ messages }: Window): number => messages[0]?.seq ?? 0
export const lastSeq = ({ messages }: Window): number => messages.at(-1)?.seq ?? 0

/** Replaces the window with a page. */
export function replaced(page: Page): Window {
  return { messages: sorted(page.data), hasBefore: page.hasBefore, hasAfter: page.hasAfter }
}

/** Prepends older messages and drops those too far below. */
export function withOlder(window: Window, page: Page): Window {
  const messages = sorted([...page.data, ...window.messages])
  const kept = messages.slice(0, MAX_MESSAGES)
  return {
    messages: kept,
    hasBefore: page.hasBefore,
    hasAfter: window.hasAfter || kept.length < messages.length,
  }
}

/** Appends newer messages and drops those too far above. */
export function withNewer(window: Window, page: Page): Window {
  const messages = sorted([...window.messages, ...page.data])
  const kept = messages.slice(-MAX_MESSAGES)
  return {
    messages: kept,
    hasBefore: window.hasBefore || kept.length < messages.length,
    hasAfter: page.hasAfter,
  }
}

/** Updates the messages from a page that starts at the same one; at the end of the thread, adds new ones. */
export function refreshed(window: Window, page: Page): Window {
  const [first, last] = [firstSeq(window), lastSeq(window)]
  const isSame = ({ seq }: MessageRecord) => seq >= first && seq <= last
  if (window.hasAfter)
    return { ...window, messages: sorted([...window.messages, ...page.data.filter(isSame)]) }
  const newer = page.data.filter(({ seq }) => seq >= first)
  return withNewer(window, { data: newer, hasBefore: window.hasBefore, hasAfter: page.hasAfter })
}

/**
 * Applies one live message: replaced in place, or appended. `null`: it does not follow the last one, so something in
 * between is missing.
 */
export function withUpdate(window: Window, message: MessageRecord): Window | null {
  const at = window.messages.findIndex(({ id }) => id === message.id)
  const before = window.messages[at]
  if (before) return { ...window, messages: window.messages.with(at, settled(before, message)) }
  if (window.hasAfter || message.seq < firstSeq(window)) return window
  if (message.seq > lastSeq(window) + 1) return null
  return withNewer(window, { data: [message], hasBefore: false, hasAfter: false })
}

/**
 * Adds the user's own message from the answer to sending it, unless present: an update is as new or newer, and later
 * changes arrive as well.
 */
export const withAnswered = (window: Window, message: MessageRecord): Window | null =>
  window.messages.some(({ id }) => id === message.id) ? window : withUpdate(window, message)

/** The later of two states: a message that reached the agent, or never will, does not wait again. */
const settled = (before: MessageRecord, message: MessageRecord): MessageRecord =>
  message.status === 'PENDING' ? { ...message, status: before.status } : message

function sorted(messages: readonly MessageRecord[]): MessageRecord[] {
  const bySeq = new Map(messages.map((message) => [message.seq, message]))
  return [...bySeq.values()].sort((a, b) => a.seq - b.seq)
}
