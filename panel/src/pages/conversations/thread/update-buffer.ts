// Updates that arrive during a read are newer than its result. No React here, tested.

export interface UpdateBuffer<Item> {
  /** Passes an update to every pending read. */
  receive: (item: Item) => void
  /** Waits for a read and applies the updates that arrived meanwhile. */
  over: <Read extends { data: readonly Item[] }>(reading: Promise<Read | null>) => Promise<Read | null>
}

export function bufferUpdates<Item extends { seq: number }>(): UpdateBuffer<Item> {
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
