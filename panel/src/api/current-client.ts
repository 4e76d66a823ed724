// The signed-in user's client. Another user gets a new one: nothing of the first remains in the cache, and its unsent
// changes are dropped, because the cookie now belongs to the other user.
import type { Client, Exchange } from '@urql/core'
import { makeClient } from './client'

let cache: Exchange | undefined
let over = new AbortController()
let client: Client = makeClient(over.signal)
const listeners = new Set<() => void>()

export const clientNow = () => client

export function onClient(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Discards all data and cancels everything in progress. */
export function resetClient(): void {
  over.abort()
  over = new AbortController()
  client = makeClient(over.signal, cache)
  for (const listener of listeners) listener()
}

/** Caches records from now on. The pages before the sign-in do without. */
export function setCache(exchange: Exchange): void {
  cache = exchange
  resetClient()
}
