// The order of a list while someone works in it: `steady` says what it is, this remembers it.
import { useEffect, useMemo, useState } from 'react'
import { steady } from './steady'

/** The items in an order that holds still while the list is in use. `settle` looks whether it is. */
export function useSteady<Item>(all: Item[], idOf: (item: Item) => string | number, inUse: () => boolean) {
  const [held, setHeld] = useState<(string | number)[] | null>(null)
  const { items, waiting } = useMemo(() => steady(held, all, idOf), [held, all, idOf])
  // What was read for the end of it is held as well: nothing may come in above it later.
  useEffect(() => {
    if (held && (held.length !== items.length || items.some((item, at) => idOf(item) !== held[at])))
      setHeld(items.map(idOf))
  }, [held, items, idOf])
  const settle = () => setHeld((before) => (inUse() ? (before ?? items.map(idOf)) : null))
  const refresh = () => setHeld(inUse() ? all.map(idOf) : null)
  return { items, waiting, settle, refresh }
}
