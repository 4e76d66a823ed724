// Reads and formats money and tokens. The service counts money in millionths.

const MILLION = 1_000_000

const amount = (micro: string | number, currency: string, digits: number) =>
  `${(Number(micro) / MILLION).toLocaleString(undefined, { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${currency}`

/** Formats millionths with the currency: `12.50 USD`. Less than a cent keeps four digits. */
export function moneyOf(micro: string | number, currency: string): string {
  const size = Math.abs(Number(micro))
  return amount(micro, currency, size > 0 && size < MILLION / 100 ? 4 : 2)
}

/** The cost of one turn or model call, always with four digits: `0.0040 USD`. Null if unknown. */
export function costOf(micro: string | null, currency: string): string | null {
  return micro === null ? null : amount(micro, currency, 4)
}

/** A typed amount in millionths. Null: empty. NaN: not an amount. */
export function microOf(value: number | null): number | null {
  if (value === null) return null
  return value > 0 ? Math.round(value * MILLION) : Number.NaN
}

/** Millionths as an editable number. */
export const amountOf = (micro: number | null): number | null => (micro === null ? null : micro / MILLION)

/** What happens when the budget or the hour's tokens run out. */
export const ACTIONS = [
  { value: 'PAUSE', label: 'Turns wait until more is allowed' },
  { value: 'STOP', label: 'The agent is stopped' },
  { value: 'NOTIFY', label: 'People are notified, and the agent continues' },
] as const

export const actionOf = (value: unknown): string =>
  ACTIONS.find((action) => action.value === value)?.label ?? String(value)
