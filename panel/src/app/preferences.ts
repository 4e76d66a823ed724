// What the person has set for the panel: kept with the account, so that it follows to the next browser.
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
  /** False: letters and signs by themselves are no shortcuts. */
  singleKeys?: boolean
  /** Saved views by page: a name and the search of an address. */
  views?: { [page: string]: { name: string; search: string }[] }
}

/** What to set, or what follows from what is stored. */
type Change = Preferences | ((before: Preferences) => Preferences)

/** What was chosen here and is not stored yet: what is read meanwhile does not undo it. */
let chosen: Preferences = {}
let running = 0

/** Applies them in this browser. */
export function applyPreferences(json: Json | null | undefined): void {
  const { theme, density, timeZone, singleKeys = true } = { ...read(json), ...chosen }
  if (theme) setTheme(theme)
  if (density) setDensity(density)
  if (timeZone) setZone({ zone: timeZone })
  setSingleKeys(singleKeys)
}

/** What is set, and a function that changes a part of it: at once here, then with the account. */
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

/** Of preferences as they are stored, those that are known. */
export function read(json: Json | null | undefined): Preferences {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return {}
  const { theme, density, timeZone, singleKeys, views } = json
  return {
    ...(theme === 'light' || theme === 'dark' || theme === 'system' ? { theme } : {}),
    ...(density === 'compact' || density === 'comfortable' ? { density } : {}),
    ...(timeZone === 'utc' || timeZone === 'local' || timeZone === 'organization' ? { timeZone } : {}),
    ...(typeof singleKeys === 'boolean' ? { singleKeys } : {}),
    ...(typeof views === 'object' && views !== null ? { views: views as Preferences['views'] } : {}),
  }
}
