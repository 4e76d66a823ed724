import { useSyncExternalStore } from 'react'
import type { Zone } from './time-format'

// The time zone for all displayed times, from the account's preferences.
interface Zoned {
  zone: Zone
  organization: string | undefined
}
let zoned: Zoned = { zone: 'local', organization: undefined }
const zoneListeners = new Set<() => void>()

/** The zone if this browser supports it. The service's list may be newer, and an unknown zone can't be formatted. */
export function knownZone(name: string | undefined): string | undefined {
  try {
    return name && new Intl.DateTimeFormat('en', { timeZone: name }) ? name : undefined
  } catch {
    return undefined
  }
}

export function setZone(next: Partial<Zoned>): void {
  const merged = { ...zoned, ...next }
  merged.organization = knownZone(merged.organization)
  if (merged.zone === zoned.zone && merged.organization === zoned.organization) return
  zoned = merged
  for (const listener of zoneListeners) listener()
}

export function useZone(): { zone: Zone; timeZone: string | undefined } {
  const { zone, organization } = useSyncExternalStore(
    (listener) => {
      zoneListeners.add(listener)
      return () => zoneListeners.delete(listener)
    },
    () => zoned,
  )
  return { zone, timeZone: zone === 'utc' ? 'UTC' : zone === 'organization' ? organization : undefined }
}
