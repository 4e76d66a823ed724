// Reads and formats money and tokens. The service counts money in millionths.

const MILLION = 1_000_000

/** Formats millionths with the currency: `12.50 USD`. Small amounts keep four digits. */
export function moneyOf(micro: string | number, currency: string): string {
  const value = Number(micro) / MILLION
  const small = value !== 0 && Math.abs(value) < 1
  const digits = { minimumFractionDigits: 2, maximumFractionDigits: small ? 4 : 2 }
  return `${value.toLocaleString(undefined, digits)} ${currency}`
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
