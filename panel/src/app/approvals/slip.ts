// Recognizes a press that was meant for the previous decision: the second half of a double click or double key press,
// after the next decision has already appeared. Pure, tested. Held keys never repeat a decision, see keys/registry.

/** How long a new form ignores presses. */
export const SETTLE_MS = 500
/** How long shortcuts ignore other approvals after a decision, because the list moves on by itself. */
export const MOVED_MS = 700
/** A form that appears this soon after a decision was caused by it. */
const FOLLOWS_MS = 2_000

interface Press {
  /** The browser's click count; 0 for a key. */
  clicks: number
  now: number
  /** When the form appeared. */
  shownAt: number
  /** When another approval was last decided. */
  decidedAt: number | null
}

export function isSlip({ clicks, now, shownAt, decidedAt }: Press): boolean {
  if (clicks === 0) return decidedAt !== null && now - decidedAt < MOVED_MS
  if (clicks > 1) return true
  if (decidedAt === null) return false
  const follows = shownAt >= decidedAt && shownAt - decidedAt < FOLLOWS_MS
  return now - (follows ? shownAt : decidedAt) < SETTLE_MS
}
