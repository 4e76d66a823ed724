// Keeps items in a list after they left it, so that nothing vanishes under the pointer: a decided approval stays in
// place and shows who decided. Pure, tested.

/** The items, with `gone` ones in their old places: each after the one it used to follow. */
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

/** Items that were there and are missing now. If more pages exist, the last ones may only have moved off the end. */
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
