// The lifetimes a token can have.

export const LIFETIMES = [
  { value: 'DEFAULT', label: 'The installation’s default', days: null },
  { value: '30', label: '30 days', days: 30 },
  { value: '90', label: '90 days', days: 90 },
  { value: '365', label: 'A year', days: 365 },
  { value: 'NEVER', label: 'Forever', days: null },
] as const

export type Lifetime = (typeof LIFETIMES)[number]['value']

/** The input: undefined for the installation's default, null for no expiry. */
export function expiryOf(lifetime: Lifetime, now: number): { expiresAt?: string | null } {
  if (lifetime === 'DEFAULT') return {}
  const days = LIFETIMES.find(({ value }) => value === lifetime)?.days
  return { expiresAt: days ? new Date(now + days * 86_400_000).toISOString() : null }
}
