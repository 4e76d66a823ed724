// The turn that a thread offers to retry. Pure, tested.
import { contentOf } from '../../../app/thread/content'
import type { MessageRecord } from '../../../app/thread/fields'

/** The errors that end a turn. */
const ENDS = ['INTERRUPTED', 'FAILED']

/** The last turn, if it failed and still has the message that it was about: a retry takes the message along. */
export function retryableTurn(messages: MessageRecord[]): number | null {
  const last = messages.at(-1)
  if (last?.kind !== 'ERROR' || !ENDS.includes(contentOf(last.content).code ?? '')) return null
  const isAsked = messages.some(({ role, turnId }) => role === 'USER' && turnId === last.turnId)
  return isAsked ? last.turnId : null
}
