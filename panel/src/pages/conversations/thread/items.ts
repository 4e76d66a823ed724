// The items of a thread in order: messages, with tool results inside their calls, day separators, and the start of the
// unread ones. Pure, tested.

import { contentOf } from '../../../app/thread/content'
import type { MessageRecord } from '../../../app/thread/fields'

export type Item =
  | { is: 'day'; key: string; at: string }
  | { is: 'new'; key: string }
  | { is: 'message'; key: string; message: MessageRecord; result?: MessageRecord; follows: boolean }

/** Messages by the same author within this interval are grouped. */
const TOGETHER_MS = 5 * 60_000
/** Kinds that show their author's name. */
export const TALK = ['TEXT', 'FILE', 'VOICE']

/** `newFrom`: the first unread seq; `dayOf`: a time's day in the user's time zone. */
export function itemsOf(
  messages: MessageRecord[],
  newFrom: number | null,
  dayOf: (at: string) => string,
): Item[] {
  const results = resultsByCall(messages)
  const items: Item[] = []
  let day = ''
  let before: MessageRecord | null = null
  for (const message of messages) {
    if (message.kind === 'TOOL_RESULT' && results.inside.has(message.id)) continue
    const today = dayOf(message.createdAt)
    const isNewDay = today !== day
    if (isNewDay) items.push({ is: 'day', key: `day-${today}`, at: message.createdAt })
    day = today
    const isFirstNew = newFrom !== null && message.seq >= newFrom && (before?.seq ?? newFrom - 1) < newFrom
    if (isFirstNew) items.push({ is: 'new', key: 'new' })
    const follows = !isNewDay && !isFirstNew && before !== null && belongTogether(before, message)
    items.push({
      is: 'message',
      key: String(message.id),
      message,
      result: message.kind === 'TOOL_CALL' ? results.of.get(callOf(message)) : undefined,
      follows,
    })
    before = message
  }
  return items
}

const callOf = (message: MessageRecord): string =>
  contentOf(message.content).callId ? `${message.turnId ?? ''}:${contentOf(message.content).callId}` : ''

/** Each call with its result: the first that follows it in the same turn. */
function resultsByCall(messages: MessageRecord[]) {
  const open = new Set<string>()
  const of = new Map<string, MessageRecord>()
  const inside = new Set<number>()
  for (const message of messages) {
    const call = callOf(message)
    if (!call) continue
    if (message.kind === 'TOOL_CALL') open.add(call)
    else if (message.kind === 'TOOL_RESULT' && open.has(call) && !of.has(call)) {
      of.set(call, message)
      inside.add(message.id)
    }
  }
  return { of, inside }
}

function belongTogether(a: MessageRecord, b: MessageRecord): boolean {
  const isTalk = ({ kind, role }: MessageRecord) =>
    TALK.includes(kind) && (role === 'USER' || role === 'ASSISTANT')
  return (
    isTalk(a) &&
    isTalk(b) &&
    a.role === b.role &&
    a.authorUserId === b.authorUserId &&
    a.authorName === b.authorName &&
    a.isUnproven === b.isUnproven &&
    new Date(b.createdAt).getTime() - new Date(a.createdAt).getTime() < TOGETHER_MS
  )
}
