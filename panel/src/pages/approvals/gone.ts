// Keeps in a list what has just left it, so that nothing vanishes under one's hand: a decided approval stays where it was,
// and says who decided. Pure, tested.

/** The items, with the `gone` ones back in their places: each after the one that it used to follow. */
export function withGone<Item>(
  before: Item[],
  now: Item[],
  gone: ReadonlyMap<number, Item>,
  idOf: (item: Item) => number,
): Item[] {
  const present = new Set(now.map(idOf))
  const after = new Map<number | null, Item[]>()
  let anchor: number | null = null
  for (const item of before) {
    const id = idOf(item)
    if (present.has(id)) {
      anchor = id
      continue
    }
    const kept = gone.get(id)
    if (kept) after.set(anchor, [...(after.get(anchor) ?? []), kept])
  }
  return [...(after.get(null) ?? []), ...now.flatMap((item) => [item, ...(after.get(idOf(item)) ?? [])])]
}

/** What stood before and is not there now. Where more is to be read, the last ones may only have moved below its end. */
export function hasLeft<Item>(
  before: Item[],
  now: Item[],
  hasMore: boolean,
  idOf: (item: Item) => number,
): Item[] {
  const present = new Set(now.map(idOf))
  const end = hasMore ? before.findLastIndex((item) => present.has(idOf(item))) : before.length
  return before.slice(0, Math.max(0, end)).filter((item) => !present.has(idOf(item)))
}
