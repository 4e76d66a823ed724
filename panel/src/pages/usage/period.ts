// Days of the organization's time zone, such as `2026-06-01`. Pure, tested.

export type Period = 'DAYS_30' | 'DAYS_90' | 'MONTH' | 'LAST_MONTH'

export interface Days {
  since: string
  /** The day after the last one. */
  before: string
}

/** The day there. */
export function dayIn(timeZone: string, now: number): string {
  const parts = new Intl.DateTimeFormat('en-CA', {
    timeZone,
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
  })
  return parts.format(now)
}

export function daysOf(period: Period, today: string): Days {
  const before = later(today, 1)
  const month = `${today.slice(0, 7)}-01`
  switch (period) {
    case 'DAYS_30':
      return { since: later(before, -30), before }
    case 'DAYS_90':
      return { since: later(before, -90), before }
    case 'MONTH':
      return { since: month, before }
    case 'LAST_MONTH':
      return { since: `${later(month, -1).slice(0, 7)}-01`, before: month }
  }
}

/** Each of the days. */
export function listed({ since, before }: Days): string[] {
  const days = []
  for (let day = since; day < before; day = later(day, 1)) days.push(day)
  return days
}

/** The number of days in the month of this day. */
export function daysInMonth(day: string): number {
  const [year = 0, month = 0] = day.split('-').map(Number)
  return new Date(Date.UTC(year, month, 0)).getUTCDate()
}

/** `1 Jun`. */
export const shortDay = (day: string, locale?: string) =>
  new Date(day).toLocaleDateString(locale, { day: 'numeric', month: 'short', timeZone: 'UTC' })

function later(day: string, days: number): string {
  const at = new Date(day)
  at.setUTCDate(at.getUTCDate() + days)
  return at.toISOString().slice(0, 10)
}
