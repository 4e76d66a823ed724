// How long an agent was up, from its launches, of which the service keeps the newest 50. Pure, tested.

interface Launch {
  generation: number
  startedAt: string
  upAt: string | null
  endedAt: string | null
}

interface Uptime {
  /** From when on it is known. */
  since: number
  /** Whether this is the whole period of 30 days. */
  isWhole: boolean
  /** Of the time since then, from 0 to 1. */
  share: number
  restarts: number
}

const PERIOD_MS = 30 * 86_400_000

/** Null without a launch. */
export function uptimeOf(launches: readonly Launch[], now: number): Uptime | null {
  if (launches.length === 0) return null
  const begins = now - PERIOD_MS
  const first = Math.min(...launches.map(({ startedAt }) => Date.parse(startedAt)))
  const since = Math.max(begins, Math.min(first, now))
  const up = launches.reduce((sum, { upAt, endedAt }) => {
    if (!upAt) return sum
    const end = endedAt ? Math.min(Date.parse(endedAt), now) : now
    return sum + Math.max(0, end - Math.max(Date.parse(upAt), since))
  }, 0)
  return {
    since,
    isWhole: first <= begins,
    share: now > since ? Math.min(1, up / (now - since)) : 0,
    // The first launch restarts nothing.
    restarts: launches.filter(({ generation, startedAt }) => generation > 1 && Date.parse(startedAt) >= since)
      .length,
  }
}

/** `99.9 %`: rounded down, because 100 % has no failure. */
export const shareInWords = (share: number) =>
  `${(Math.floor(share * 1000) / 10).toLocaleString(undefined, { maximumFractionDigits: 1 })} %`
