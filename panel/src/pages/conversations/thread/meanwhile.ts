// Updates that arrive while records are read are newer than the answer. No React here, tested.

export interface Meanwhile<Item> {
  /** An update arrives: every pending read gets it. */
  receive: (item: Item) => void
  /** Waits for what is read, with the updates since then in its place. */
  over: <Read extends { data: readonly Item[] }>(reading: Promise<Read | null>) => Promise<Read | null>
}

export function meanwhile<Item extends { seq: number }>(): Meanwhile<Item> {
  const all = new Set<Map<number, Item>>()
  return {
    receive: (item) => {
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
