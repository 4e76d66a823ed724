// Remembers the order of a list while someone works in it; ui/stable-order computes it.
import { useEffect, useMemo, useState } from 'react'
import { stableOrder } from './stable-order'

/** The items in an order that is frozen while the list is in use. `settle` re-checks whether it is. */
export function useStableOrder<Item>(
  all: Item[],
  idOf: (item: Item) => string | number,
  inUse: () => boolean,
  open?: string | number | null,
) {
  const [held, setHeld] = useState<(string | number)[] | null>(null)
  const { items, waiting } = useMemo(() => stableOrder(held, all, idOf, open), [held, all, idOf, open])
  // Items loaded at the end are frozen as well: nothing may appear above them later.
  useEffect(() => {
    if (held && (held.length !== items.length || items.some((item, at) => idOf(item) !== held[at])))
      setHeld(items.map(idOf))
  }, [held, items, idOf])
  const settle = () => setHeld((before) => (inUse() ? (before ?? items.map(idOf)) : null))
  const refresh = () => setHeld(inUse() ? all.map(idOf) : null)
  return { items, waiting, settle, refresh }
}
