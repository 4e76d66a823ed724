// Whether the last turn of a thread failed, and can be asked for again. Pure, tested.
import { contentOf } from '../../../app/thread/content'
import type { MessageRecord } from '../../../app/thread/fields'

/** The errors that end a turn. */
const ENDS = ['INTERRUPTED', 'FAILED']

/** The viewer's message that the failed last turn was about. No one can repeat another person's, or its files. */
export function repeatable(messages: MessageRecord[], viewerId: number): string | null {
  const last = messages.at(-1)
  if (last?.kind !== 'ERROR' || !ENDS.includes(contentOf(last.content).code ?? '')) return null
  const asked = messages.findLast(({ role, turnId }) => role === 'USER' && turnId === last.turnId)
  if (asked?.kind !== 'TEXT' || asked.authorUserId !== viewerId || asked.attachments.length > 0) return null
  return contentOf(asked.content).text || null
}
