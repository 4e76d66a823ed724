// What is told of records while they are read is newer than what the answer says. No React here, tested.

export interface Meanwhile<Item> {
  /** Something is told: whatever is being read gets it. */
  told: (item: Item) => void
  /** Waits for what is read, with what was told since it was asked for in its place. */
  over: <Read extends { data: readonly Item[] }>(reading: Promise<Read | null>) => Promise<Read | null>
}

export function meanwhile<Item extends { seq: number }>(): Meanwhile<Item> {
  const all = new Set<Map<number, Item>>()
  return {
    told: (item) => {
      for (const newer of all) newer.set(item.seq, item)
    },
    over: async (reading) => {
      const newer = new Map<number, Item>()
      all.add(newer)
      try {
        const read = await reading
        return read && { ...read, data: read.data.map((item) => newer.get(item.seq) ?? item) }
      } finally {
        all.delete(newer)
      }
    },
  }
}
