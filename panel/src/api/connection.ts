// Whether live changes reach the panel: the state behind the banner and live queries. No React here.

export type Connection =
  | { state: 'connecting' }
  | { state: 'live' }
  /** Lost; the page is as old as `since`. */
  | { state: 'lost'; since: number }

type Listener = () => void

let connection: Connection = { state: 'connecting' }
const listeners = new Set<Listener>()
const returned = new Set<Listener>()

export const connectionNow = () => connection

export function onConnection(listener: Listener): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Calls back on each reconnection: the page may be out of date. */
export function onReturn(listener: Listener): () => void {
  returned.add(listener)
  return () => returned.delete(listener)
}

export function connected(): void {
  const wasLost = connection.state === 'lost'
  set({ state: 'live' })
  if (wasLost) for (const listener of returned) listener()
}

export function disconnected(): void {
  if (connection.state !== 'lost') set({ state: 'lost', since: Date.now() })
}

/** Signed out: there is nothing to connect to. */
export function idle(): void {
  set({ state: 'connecting' })
}

function set(next: Connection): void {
  connection = next
  for (const listener of listeners) listener()
}
