// Amounts of money and of tokens, as people read and type them. The service counts money in millionths.

const MILLION = 1_000_000

/** Millionths as people read them, with the currency: `12.50 USD`. Small amounts keep four digits. */
export function moneyOf(micro: string | number, currency: string): string {
  const value = Number(micro) / MILLION
  const small = value !== 0 && Math.abs(value) < 1
  const digits = { minimumFractionDigits: 2, maximumFractionDigits: small ? 4 : 2 }
  return `${value.toLocaleString(undefined, digits)} ${currency}`
}

/** What was typed, in millionths. Null: nothing was typed. NaN: no amount. */
export function microOf(value: number | null): number | null {
  if (value === null) return null
  return value > 0 ? Math.round(value * MILLION) : Number.NaN
}

/** Millionths as a number to type over. */
export const amountOf = (micro: number | null): number | null => (micro === null ? null : micro / MILLION)

/** What happens when a budget is spent, or the tokens of an hour. */
export const ACTIONS = [
  { value: 'PAUSE', label: 'Turns wait until more is allowed' },
  { value: 'STOP', label: 'The agent is stopped' },
  { value: 'NOTIFY', label: 'People are notified, and the agent continues' },
] as const

export const actionOf = (value: unknown): string =>
  ACTIONS.find((action) => action.value === value)?.label ?? String(value)
