// The client of whoever is signed in. Somebody else gets a new one: nothing of the first is left in its cache.
import type { Client } from '@urql/core'
import { makeClient } from './client'

let client: Client = makeClient()
const listeners = new Set<() => void>()

export const clientNow = () => client

export function onClient(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Forgets everything that was read. */
export function startOver(): void {
  client = makeClient()
  for (const listener of listeners) listener()
}
