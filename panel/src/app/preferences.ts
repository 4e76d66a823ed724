// What the person has set for the panel: kept with the account, so that it follows to the next browser.
import { useCallback } from 'react'
import { graphql, type Json } from '../api/graphql'
import { useAct } from '../api/use-act'
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

const SetPreferences = graphql(`
  mutation SetPreferences($preferences: JSON!) {
    setPreferences(preferences: $preferences) { preferences }
  }
`)

/** Applies them in this browser. */
export function applyPreferences(json: Json | null | undefined): void {
  const { theme, density, timeZone, singleKeys = true } = read(json)
  if (theme) setTheme(theme)
  if (density) setDensity(density)
  if (timeZone) setZone({ zone: timeZone })
  setSingleKeys(singleKeys)
}

/** What is set, and a function that changes a part of it: at once here, then with the account. */
export function usePreferences(): [Preferences, (change: Preferences) => Promise<void>] {
  const viewer = useViewer()
  const act = useAct(SetPreferences)
  const now = read(viewer.preferences)
  const change = useCallback(
    async (part: Preferences) => {
      const next = { ...read(viewer.preferences), ...part }
      applyPreferences(next as Json)
      await act({ preferences: next as Json })
    },
    [act, viewer.preferences],
  )
  return [now, change]
}

function read(json: Json | null | undefined): Preferences {
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
