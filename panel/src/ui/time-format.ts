// Formats times for people. Pure, tested.

export type Zone = 'local' | 'utc' | 'organization'

const STEPS: [unit: Intl.RelativeTimeFormatUnit, seconds: number][] = [
  ['year', 31_557_600],
  ['month', 2_629_800],
  ['week', 604_800],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
]

/** "3 minutes ago", "in 2 hours", "just now". `short`: "3m ago". */
export function relative(
  at: number,
  now: number,
  locale?: string,
  style: 'long' | 'narrow' = 'long',
): string {
  const seconds = (at - now) / 1000
  const size = Math.abs(seconds)
  // A time that was set a moment ago to a year from now is still a year ahead, not eleven months.
  const slack = seconds > 0 ? 0.01 : 0
  // Always numeric: "yesterday" means a calendar day, but 40 hours ago may be two days back.
  const format = new Intl.RelativeTimeFormat(locale, { style })
  for (const [unit, length] of STEPS) {
    const count = Math.trunc(size / length + slack)
    if (count > 0) return format.format(seconds < 0 ? -count : count, unit)
  }
  // The list clock ticks every five seconds, so a time slightly ahead of it is in the past.
  if (size < 10) return seconds < 5 ? 'just now' : 'now'
  return format.format(Math.trunc(seconds), 'second')
}

/** Date and time to the second, for records: the date is always there. */
export function dated(
  at: number,
  timeZone: string | undefined,
  locale?: string,
  timeZoneName?: 'short',
): string {
  return new Intl.DateTimeFormat(locale, {
    year: 'numeric',
    month: 'short',
    day: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    timeZone,
    timeZoneName,
  }).format(at)
}

/** The full time, with its time zone named. */
export const absolute = (at: number, timeZone: string | undefined, locale?: string) =>
  dated(at, timeZone, locale, 'short')

/** Date and time without seconds, for lists. The year only if it is not the current one. */
export function stamp(at: number, now: number, timeZone: string | undefined, locale?: string): string {
  const day = (time: number) =>
    new Intl.DateTimeFormat('en-CA', { timeZone, dateStyle: 'short' }).format(time)
  const clock = { hour: '2-digit', minute: '2-digit', timeZone } as const
  if (day(at) === day(now)) return new Intl.DateTimeFormat(locale, clock).format(at)
  const year = day(at).slice(0, 4) === day(now).slice(0, 4) ? undefined : ('numeric' as const)
  return new Intl.DateTimeFormat(locale, { ...clock, day: 'numeric', month: 'short', year }).format(at)
}

/** "1:05", "2:03:09": elapsed or remaining time. Never negative. */
export function clock(milliseconds: number): string {
  const whole = Math.max(0, Math.floor(milliseconds / 1000))
  const [hours, minutes, seconds] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60]
  const two = (value: number) => String(value).padStart(2, '0')
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds)}` : `${minutes}:${two(seconds)}`
}

/** A duration: "840 ms", "3.2 s", "4 min 5 s", "2 h 7 min", "3 d 4 h". */
export function duration(milliseconds: number): string {
  const ms = Math.max(0, milliseconds)
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 10_000) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`
  const seconds = Math.floor(ms / 1000)
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3600) return pair(Math.floor(seconds / 60), 'min', seconds % 60, 's')
  if (seconds < 86_400) return pair(Math.floor(seconds / 3600), 'h', Math.floor(seconds / 60) % 60, 'min')
  return pair(Math.floor(seconds / 86_400), 'd', Math.floor(seconds / 3600) % 24, 'h')
}

/** A running duration, in whole seconds: "6 s". */
export function wholeSeconds(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000))
  return seconds < 60 ? `${seconds} s` : duration(milliseconds)
}

function pair(big: number, bigUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${big} ${bigUnit}` : `${big} ${bigUnit} ${small} ${smallUnit}`
}
