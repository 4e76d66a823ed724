// What is read out of the messages that come while one is at the end of a thread. Pure, tested.
import { lineOf } from '../../../app/thread/content'
import type { MessageRecord } from '../../../app/thread/fields'
import { authorOf, type Names } from './names'

/** Folded for the eye, and passed over for the ear. */
const FOLDED = ['THINKING', 'TOOL_CALL', 'TOOL_RESULT']

/** Those that are worth reading out: no one needs to hear what they have just written. */
export const toRead = (come: MessageRecord[], viewerId: number): MessageRecord[] =>
  come.filter(({ kind, authorUserId }) => authorUserId !== viewerId && !FOLDED.includes(kind))

/** The last of them, and how many there are. */
export function arrivalWords(come: MessageRecord[], names: Names): string {
  const last = come.at(-1)
  if (!last) return ''
  const text = `${authorOf(last, names)}: ${lineOf(last.kind, last.content)}`
  return come.length === 1 ? text : `${come.length} new messages. ${text}`
}
