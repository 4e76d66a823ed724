// A relative, live time with the full time on hover; and durations.
import { useZone } from './clock'
import { useNow } from './now'
import { absolute, clock, dated, duration, relative, stamp, wholeSeconds } from './time-format'

interface Props {
  at: string | number | null | undefined
  /** `stamp` shows date and time instead; `dated` always the date, and seconds. */
  as?: 'relative' | 'short' | 'stamp' | 'dated'
  /** Shown without a time. */
  none?: string
}

export function Time({ at, as = 'relative', none = 'never' }: Props) {
  const now = useNow(as === 'stamp' ? 60_000 : 5_000)
  const { timeZone } = useZone()
  if (at === null || at === undefined) return <span className="text-faint">{none}</span>
  const time = new Date(at).getTime()
  const whole = absolute(time, timeZone)
  const text =
    as === 'dated'
      ? dated(time, timeZone)
      : as === 'stamp'
        ? stamp(time, now, timeZone)
        : relative(time, now, undefined, as === 'short' ? 'narrow' : 'long')
  return (
    <time dateTime={new Date(time).toISOString()} data-tip={whole} className="whitespace-nowrap tabular-nums">
      {text}
    </time>
  )
}

/** A finished or running duration. `whole` omits fractions of a second, for running ones. */
export function Duration({
  from,
  to,
  whole,
}: {
  from: string | null | undefined
  to?: string | null
  whole?: boolean
}) {
  const now = useNow(1000)
  if (!from) return <span className="text-faint">not started</span>
  const end = to ? new Date(to).getTime() : now
  const lasted = end - new Date(from).getTime()
  return (
    <span data-ticking className="whitespace-nowrap tabular-nums">
      {whole ? wholeSeconds(lasted) : duration(lasted)}
    </span>
  )
}

/** The time left: "4:32" after `before`, or `over` once it has passed. */
export function Countdown({
  to,
  before = '',
  over = 'over',
}: {
  to: string
  /** "expires in " */
  before?: string
  over?: string
}) {
  const now = useNow(1000)
  const { timeZone } = useZone()
  const end = new Date(to).getTime()
  if (end <= now) return <span>{over}</span>
  const near = end - now < 3_600_000
  return (
    <time
      dateTime={to}
      data-tip={absolute(end, timeZone)}
      role="timer"
      className="whitespace-nowrap tabular-nums"
    >
      {near ? `${before}${clock(end - now)}` : `${before.replace(/ in $/, ' ')}${relative(end, now)}`}
    </time>
  )
}
