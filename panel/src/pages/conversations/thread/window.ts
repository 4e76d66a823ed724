// The part of a thread that is in memory: a run of messages without holes, short enough for the page. Pure, tested.
import type { MessageRecord } from '../../../app/thread/fields'

/** More messages than this are never in the page. The service gives as many at a time. */
export const MOST = 200

export interface Window {
  /** In their order, without holes. */
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

/** A page in place of everything. */
export function replaced(page: Page): Window {
  return { messages: sorted(page.data), hasBefore: page.hasBefore, hasAfter: page.hasAfter }
}

/** Older messages before it. What is too far below goes. */
export function withOlder(window: Window, page: Page): Window {
  const messages = sorted([...page.data, ...window.messages])
  const kept = messages.slice(0, MOST)
  return {
    messages: kept,
    hasBefore: page.hasBefore,
    hasAfter: window.hasAfter || kept.length < messages.length,
  }
}

/** Newer messages behind it. What is too far above goes. */
export function withNewer(window: Window, page: Page): Window {
  const messages = sorted([...window.messages, ...page.data])
  const kept = messages.slice(-MOST)
  return {
    messages: kept,
    hasBefore: window.hasBefore || kept.length < messages.length,
    hasAfter: page.hasAfter,
  }
}

/** The same messages as they are now, from a page that begins where they do; at the end of the thread, new ones as well. */
export function refreshed(window: Window, page: Page): Window {
  const [first, last] = [firstSeq(window), lastSeq(window)]
  const isSame = ({ seq }: MessageRecord) => seq >= first && seq <= last
  if (window.hasAfter)
    return { ...window, messages: sorted([...window.messages, ...page.data.filter(isSame)]) }
  const newer = page.data.filter(({ seq }) => seq >= first)
  return withNewer(window, { data: newer, hasBefore: window.hasBefore, hasAfter: page.hasAfter })
}

/**
 * One message that arrived live: changed in its place, or added at the end. `null`: it does not follow the last one, so
 * something in between is missing.
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
 * One's own message, as it was answered when it was sent. Only if it is not there: an update of it is as new or
 * newer, and every later change comes as well.
 */
export const withAnswered = (window: Window, message: MessageRecord): Window | null =>
  window.messages.some(({ id }) => id === message.id) ? window : withUpdate(window, message)

/** The later of two states of a message: one that has reached the agent, or never will, does not wait again. */
const settled = (before: MessageRecord, message: MessageRecord): MessageRecord =>
  message.status === 'PENDING' ? { ...message, status: before.status } : message

function sorted(messages: readonly MessageRecord[]): MessageRecord[] {
  const bySeq = new Map(messages.map((message) => [message.seq, message]))
  return [...bySeq.values()].sort((a, b) => a.seq - b.seq)
}
