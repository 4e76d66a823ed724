// Dialogs, menus and pickers are a chunk of their own, which the first load does without. It is fetched as soon as the
// first page is shown, or at once if someone needs it earlier.
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

/** The overlays, or null until they are there. Fetches them if they are `wanted`. */
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

/** The overlays, for a button that stands in for them. While it has the focus it stays, since the focus would go with it. */
export function useStandIn(wanted: boolean) {
  const overlays = useOverlays(wanted)
  const [isFocused, focus] = useState(false)
  const focused = { onFocus: () => focus(true), onBlur: () => focus(false) }
  return { overlays: isFocused && !wanted ? null : overlays, focused }
}
