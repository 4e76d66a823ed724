// Whether someone is signed in. The session is a cookie that scripts can't read; this only remembers the service's last
// answer. No React here.

export type SessionState =
  /** Not known yet. */
  | 'unknown'
  | 'in'
  | 'out'
  /** The session has ended; the page stays. Unless another tab has signed in, a dialog asks to sign in again. */
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

/** The user is signing out. The socket may close before the answer arrives, which is not an expired session. */
export function setSigningOut(now: boolean): void {
  isLeaving = now
}

/** The user signed out here. */
export function signedOut(): void {
  set('out')
}

/** The service refused: the session is over. */
export function sessionEnded(): void {
  if (isLeaving) return
  set(state === 'in' || state === 'ended' ? 'ended' : 'out')
}

/** The session's permissions may have changed. */
export function sessionChanged(): void {
  for (const listener of listeners) listener()
}

function set(next: SessionState): void {
  if (state === next) return
  state = next
  sessionChanged()
}
