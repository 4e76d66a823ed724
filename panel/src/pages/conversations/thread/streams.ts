// Assembles streamed messages from deltas. If one is missing, the complete message is awaited. Pure, tested.

export interface Stream {
  text: string
  /** The text's length in UTF-8 bytes: the offset of the next delta. */
  bytes: number
  thinking: boolean
  /** A delta is missing. */
  isBroken: boolean
}

export interface Delta {
  message: string
  offset: number
  text: string
  thinking: boolean
}

export type Streams = ReadonlyMap<string, Stream>

const encoder = new TextEncoder()

export function withDelta(streams: Streams, { message, offset, text, thinking }: Delta): Streams {
  const before = streams.get(message) ?? { text: '', bytes: 0, thinking, isBroken: false }
  if (before.isBroken || offset < before.bytes) return streams
  const next =
    offset > before.bytes
      ? { ...before, isBroken: true }
      : { ...before, text: before.text + text, bytes: before.bytes + encoder.encode(text).length }
  return new Map(streams).set(message, next)
}

/** Removes streams whose message has arrived. */
export function without(streams: Streams, hostKeys: (string | null)[]): Streams {
  const done = hostKeys.filter((key): key is string => key !== null && streams.has(key))
  if (done.length === 0) return streams
  const left = new Map(streams)
  for (const key of done) left.delete(key)
  return left
}
