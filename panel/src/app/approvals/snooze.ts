// The times until which an approval may be snoozed. Pure, tested.

/** A snoozed approval reappears at least this long before it expires. */
const BEFORE_EXPIRY_MS = 10 * 60_000

export interface SnoozeChoice {
  label: string
  until: string
  /** Why the option is disabled. */
  refused?: string
}

export function snoozeChoices(now: Date, expiresAt: string | null): SnoozeChoice[] {
  const latest = expiresAt ? new Date(expiresAt).getTime() - BEFORE_EXPIRY_MS : Number.POSITIVE_INFINITY
  const tomorrow = new Date(now)
  tomorrow.setDate(tomorrow.getDate() + 1)
  tomorrow.setHours(9, 0, 0, 0)
  const choices: [string, number][] = [
    ['For 15 minutes', now.getTime() + 15 * 60_000],
    ['For an hour', now.getTime() + 3_600_000],
    ['For four hours', now.getTime() + 4 * 3_600_000],
    ['Until tomorrow at nine', tomorrow.getTime()],
  ]
  if (Number.isFinite(latest)) choices.push(['Until ten minutes before it expires', latest])
  return choices.map(([label, at]) => ({
    label,
    until: new Date(at).toISOString(),
    ...(at > latest
      ? { refused: 'It expires before that.' }
      : at <= now.getTime()
        ? { refused: 'It expires within ten minutes.' }
        : {}),
  }))
}
