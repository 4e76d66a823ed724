// Whether the agent has a message already. Its status says so; what the agent does may be known earlier. Pure, tested.
import type { MessageRecord } from '../../../app/thread/fields'

/** The turns that the agent has begun: those that are under way, and those in which it has done something. */
export function begunTurns(
  messages: readonly MessageRecord[],
  open: readonly { id: number; state: string }[],
): ReadonlySet<number> {
  const begun = open.filter(({ state }) => state !== 'QUEUED').map(({ id }) => id)
  const done = messages.filter(({ role }) => role !== 'USER').map(({ turnId }) => turnId)
  return new Set([...begun, ...done].filter((id) => id !== null))
}

/** Whether it waits for the agent, who has not begun its turn. */
export const waits = ({ status, role, turnId }: MessageRecord, begun: ReadonlySet<number>): boolean =>
  status === 'PENDING' && role === 'USER' && !(turnId !== null && begun.has(turnId))
