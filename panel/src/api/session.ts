// Whether someone is signed in. The session itself is a cookie that no script can read; this only remembers what the
// service said last. No React here.

export type SessionState =
  /** Not asked yet. */
  | 'unknown'
  | 'in'
  | 'out'
  /** It was there and has ended: the page stays. Unless another tab has signed in, the panel asks to sign in over it. */
  | 'ended'

let state: SessionState = 'unknown'
let isLeaving = false
const listeners = new Set<() => void>()

export const sessionNow = () => state

export function onSession(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export function signedIn(): void {
  set('in')
}

/** The person is signing out. The socket may end before the answer arrives: that is not a session that has ended by itself. */
export function leaving(now: boolean): void {
  isLeaving = now
}

/** The person has signed out here. */
export function signedOut(): void {
  set('out')
}

/** The service refused: what was there is over. */
export function sessionEnded(): void {
  if (isLeaving) return
  set(state === 'in' || state === 'ended' ? 'ended' : 'out')
}

/** The session may do more or less than before. */
export function sessionChanged(): void {
  for (const listener of listeners) listener()
}

function set(next: SessionState): void {
  if (state === next) return
  state = next
  sessionChanged()
}
