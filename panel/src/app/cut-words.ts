// Describes the work that a stop interrupts, and who stopped it. Pure, tested.

const DID: Record<string, string> = {
  TURN: 'cancelled the turn',
  AGENT: 'stopped the agent',
  RESTART: 'restarted the agent',
  ORGANIZATION: 'stopped all agents',
}

/** "Ada stopped the agent". Null: no one did. */
export const cutWords = (by: string | null | undefined, cut: string | null | undefined): string | null =>
  by && cut ? `${by} ${DID[cut] ?? 'ended it'}` : null

/** "ends 2 turns and withdraws 1 approval". Null: nothing ends. */
export function endsInWords(turns: number, approvals: number): string | null {
  const parts = [
    turns > 0 && `ends ${turns === 1 ? '1 turn' : `${turns} turns`}`,
    approvals > 0 && `withdraws ${approvals === 1 ? '1 approval' : `${approvals} approvals`}`,
  ]
  return parts.filter(Boolean).join(' and ') || null
}
