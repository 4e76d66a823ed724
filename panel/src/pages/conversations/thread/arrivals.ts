// Announcements for messages that arrive at the end of a thread. Pure, tested.
import { lineOf } from '../../../app/thread/content'
import type { MessageRecord } from '../../../app/thread/fields'
import { authorOf, type Names } from './names'

/** Collapsed on screen and skipped in announcements. */
const FOLDED = ['THINKING', 'TOOL_CALL', 'TOOL_RESULT']

/** The messages to announce, without the user's own. */
export const announceable = (come: MessageRecord[], viewerId: number): MessageRecord[] =>
  come.filter(({ kind, authorUserId }) => authorUserId !== viewerId && !FOLDED.includes(kind))

/** Announces the last message and the number of new ones. */
export function arrivalWords(come: MessageRecord[], names: Names): string {
  const last = come.at(-1)
  if (!last) return ''
  const text = `${authorOf(last, names)}: ${lineOf(last.kind, last.content)}`
  return come.length === 1 ? text : `${come.length} new messages. ${text}`
}
