// Freezes the order of a list while someone points at it or works in it. Pure, tested.

export interface StableOrder<Item> {
  items: Item[]
  /** How many items are new or out of place. */
  waiting: number
}

/**
 * The current records in the displayed order; new ones wait. The order as given with `shown` null, and while the open
 * record is not displayed: it was just opened or created, and must be found.
 */
export function stableOrder<Item>(
  shown: (string | number)[] | null,
  items: Item[],
  idOf: (item: Item) => string | number,
  open?: string | number | null,
): StableOrder<Item> {
  if (!shown) return { items, waiting: 0 }
  const byId = new Map(items.map((item) => [idOf(item), item]))
  if (open != null && byId.has(open) && !shown.includes(open)) return { items, waiting: 0 }
  const kept = shown.flatMap((id) => {
    const item = byId.get(id)
    return item === undefined ? [] : [item]
  })
  const known = new Set(shown)
  // Records below everything displayed move nothing: the next page.
  let tail = items.length
  while (tail > 0 && !known.has(idOf(items[tail - 1] as Item))) tail -= 1
  const appended = items.slice(tail)
  const fresh = items.slice(0, tail).filter((item) => !known.has(idOf(item))).length
  const order = items.slice(0, tail).filter((item) => known.has(idOf(item)))
  const places = new Map(kept.map((item, place) => [idOf(item), place]))
  const moved = order.length - longestRise(order.map((item) => places.get(idOf(item)) ?? 0))
  return { items: [...kept, ...appended], waiting: fresh + moved }
}

/** The length of the longest increasing subsequence: the items that did not move past one another. */
function longestRise(numbers: number[]): number {
  // The smallest last number of an increasing run, by its length.
  const ends: number[] = []
  for (const number of numbers) {
    let [low, high] = [0, ends.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((ends[middle] as number) < number) low = middle + 1
      else high = middle
    }
    ends[low] = number
  }
  return ends.length
}
