// The period of an export of the audit log, and its address. Pure, tested.

export interface Period {
  from?: string
  to?: string
}

export type Choice = 'SHOWN' | 'DAY' | 'WEEK' | 'MONTH' | 'YEAR' | 'ALL' | 'DATES'

const HOURS: Partial<Record<Choice, number>> = { DAY: 24, WEEK: 168, MONTH: 720, YEAR: 8_760 }

/** The chosen period. `dates` are days of this browser's time zone, the last one included; an empty one is open. */
export function periodOf(
  choice: Choice,
  shown: Period,
  dates: { first: string; last: string },
  now: number,
): Period {
  const hours = HOURS[choice]
  if (hours) return { from: new Date(now - hours * 3_600_000).toISOString() }
  if (choice === 'SHOWN') return shown
  if (choice === 'ALL') return {}
  return { from: midnight(dates.first, 0), to: midnight(dates.last, 1) }
}

function midnight(date: string, daysLater: number): string | undefined {
  if (!date) return undefined
  const day = new Date(`${date}T00:00`)
  day.setDate(day.getDate() + daysLater)
  return day.toISOString()
}

export function exportPath(orgId: number, { from, to }: Period): string {
  const parameters = new URLSearchParams()
  if (from) parameters.set('from', from)
  if (to) parameters.set('to', to)
  const written = parameters.toString()
  return `/export/audit/${orgId}${written && `?${written}`}`
}
