// Recognizes a press that was meant for the decision before: the second half of a double click, or of a key tapped twice, when
// the next decision has already appeared. Pure, tested. Held keys never repeat a decision, see keys/registry.

/** How long a form that has just appeared ignores presses. */
export const SETTLE_MS = 500
/** How long keys decide nothing else after a decision, because the list has moved on by itself. */
export const MOVED_MS = 700
/** A form that appears this soon after a decision appeared because of it. */
const FOLLOWS_MS = 2_000

interface Press {
  /** How many clicks the browser counts in a row; 0 is a key. */
  clicks: number
  now: number
  /** When the form came up. */
  shownAt: number
  /** When another approval was decided last. */
  decidedAt: number | null
}

export function isSlip({ clicks, now, shownAt, decidedAt }: Press): boolean {
  if (clicks === 0) return decidedAt !== null && now - decidedAt < MOVED_MS
  if (clicks > 1) return true
  if (decidedAt === null) return false
  const follows = shownAt >= decidedAt && shownAt - decidedAt < FOLLOWS_MS
  return now - (follows ? shownAt : decidedAt) < SETTLE_MS
}
