// The selected rows of a list, for bulk actions.
import { useMemo, useState } from 'react'

type Id = string | number

export interface Selection {
  ids: ReadonlySet<Id>
  has: (id: Id) => boolean
  /** Toggles one row; with `range` (all ids in order), everything since the last toggled one. */
  toggle: (id: Id, range?: Id[]) => void
  all: (ids: Id[]) => void
  clear: () => void
}

export function useSelection(): Selection {
  const [{ ids, last }, set] = useState<{ ids: ReadonlySet<Id>; last: Id | null }>({
    ids: new Set(),
    last: null,
  })
  return useMemo(
    () => ({
      ids,
      has: (id) => ids.has(id),
      toggle: (id, range) => set({ ids: toggled(ids, id, last, range), last: id }),
      all: (all) => set({ ids: new Set(ids.size === all.length ? [] : all), last: null }),
      clear: () => set({ ids: new Set(), last: null }),
    }),
    [ids, last],
  )
}

function toggled(ids: ReadonlySet<Id>, id: Id, last: Id | null, range?: Id[]): Set<Id> {
  const next = new Set(ids)
  const [from, to] = [last === null ? -1 : (range?.indexOf(last) ?? -1), range?.indexOf(id) ?? -1]
  if (range && from >= 0 && to >= 0) {
    for (const between of range.slice(Math.min(from, to), Math.max(from, to) + 1)) next.add(between)
  } else if (!next.delete(id)) next.add(id)
  return next
}
