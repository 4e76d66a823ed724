// The user's preferences for the panel, stored with the account, so that they apply in every browser.
import { useClient } from 'urql'
import { fetched } from '../api/chunk'
import type { Json } from '../api/graphql'
import { setSingleKeys } from '../keys/registry'
import { setZone } from '../ui/clock'
import { type Density, setDensity, setTheme, type Theme } from '../ui/theme'
import type { Zone } from '../ui/time-format'
import { useViewer } from './viewer'

export interface Preferences {
  theme?: Theme
  density?: Density
  timeZone?: Zone
  /** False: single letters and characters are not shortcuts. */
  singleKeys?: boolean
  /** The organizations whose “Get started” is not in the navigation. */
  startPutAway?: number[]
  /** Saved views by page: a name and the address's search string. */
  views?: { [page: string]: { name: string; search: string }[] }
}

/** New preferences, or a function of the stored ones. */
type Change = Preferences | ((before: Preferences) => Preferences)

/** Choices that are not stored yet: reading the stored preferences must not undo them. */
let chosen: Preferences = {}
let running = 0

/** Applies preferences in this browser. */
export function applyPreferences(json: Json | null | undefined): void {
  const { theme, density, timeZone, singleKeys = true } = { ...read(json), ...chosen }
  if (theme) setTheme(theme)
  if (density) setDensity(density)
  if (timeZone) setZone({ zone: timeZone })
  setSingleKeys(singleKeys)
}

/** The preferences, and a function that changes a part: here at once, then in the account. */
export function usePreferences(): [Preferences, (change: Change) => Promise<void>] {
  const client = useClient()
  const now = read(useViewer().preferences)
  const change = async (to: Change) => {
    const isPart = typeof to !== 'function'
    if (isPart) chosen = { ...chosen, ...to }
    applyPreferences(now as Json)
    running += 1
    try {
      const { changePreferences } = await fetched(() => import('./preferences-change'))
      await changePreferences(client, isPart ? () => to : to)
    } finally {
      running -= 1
      if (running === 0) chosen = {}
    }
  }
  return [now, change]
}

/** Picks the known preferences from the stored JSON. */
export function read(json: Json | null | undefined): Preferences {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return {}
  const { theme, density, timeZone, singleKeys, startPutAway, views } = json
  return {
    ...(theme === 'light' || theme === 'dark' || theme === 'system' ? { theme } : {}),
    ...(density === 'compact' || density === 'comfortable' ? { density } : {}),
    ...(timeZone === 'utc' || timeZone === 'local' || timeZone === 'organization' ? { timeZone } : {}),
    ...(typeof singleKeys === 'boolean' ? { singleKeys } : {}),
    ...(Array.isArray(startPutAway) ? { startPutAway: startPutAway as number[] } : {}),
    ...(typeof views === 'object' && views !== null ? { views: views as Preferences['views'] } : {}),
  }
}
