// The client of the signed-in person. Someone else gets a new one: nothing of the first is left in its cache, and what the
// first has not sent yet it never sends, because the cookie is the other's by then.
import type { Client } from '@urql/core'
import { makeClient } from './client'

let over = new AbortController()
let client: Client = makeClient(over.signal)
const listeners = new Set<() => void>()

export const clientNow = () => client

export function onClient(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Forgets everything that was read, and sends nothing more of what was begun. */
export function startOver(): void {
  over.abort()
  over = new AbortController()
  client = makeClient(over.signal)
  for (const listener of listeners) listener()
}
