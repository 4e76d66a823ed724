// Dialogs, menus and pickers are one chunk, which the first load omits. It loads right after the first page is shown,
// or earlier on demand.
import { useEffect, useState, useSyncExternalStore } from 'react'
import { fetched } from '../api/chunk'

type Overlays = typeof import('./overlays/all')

let loaded: Overlays | null = null
let loading: Promise<Overlays> | null = null
const listeners = new Set<() => void>()

export function loadOverlays(): Promise<Overlays> {
  loading ??= fetched(() => import('./overlays/all')).then((overlays) => {
    loaded = overlays
    for (const listener of listeners) listener()
    return overlays
  })
  return loading
}

/** The overlays, or null until loaded. Loads them if `wanted`. */
export function useOverlays(wanted = false): Overlays | null {
  const overlays = useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => loaded,
  )
  useEffect(() => {
    if (wanted) void loadOverlays()
  }, [wanted])
  return overlays
}

/** For a button that stands in for an overlay. It stays while focused, because removing it would lose the focus. */
export function useStandIn(wanted: boolean) {
  const overlays = useOverlays(wanted)
  const [isFocused, focus] = useState(false)
  const focused = { onFocus: () => focus(true), onBlur: () => focus(false) }
  return { overlays: isFocused && !wanted ? null : overlays, focused }
}
