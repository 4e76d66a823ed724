// Whether a message is still waiting for the agent. Its status says so; the agent's activity may show it earlier. Pure,
// tested.
import type { MessageRecord } from '../../../app/thread/fields'

/** The turns the agent has started: those in progress, and those with activity. */
export function begunTurns(
  messages: readonly MessageRecord[],
  open: readonly { id: number; state: string }[],
): ReadonlySet<number> {
  const begun = open.filter(({ state }) => state !== 'QUEUED').map(({ id }) => id)
  const done = messages.filter(({ role }) => role !== 'USER').map(({ turnId }) => turnId)
  return new Set([...begun, ...done].filter((id) => id !== null))
}

/** Whether the message waits because the agent has not started its turn. */
export const isWaiting = ({ status, role, turnId }: MessageRecord, begun: ReadonlySet<number>): boolean =>
  status === 'PENDING' && role === 'USER' && !(turnId !== null && begun.has(turnId))
