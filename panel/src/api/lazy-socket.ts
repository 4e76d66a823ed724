// Loads the socket with the first subscription, to keep it out of the first paint.
import { fetched } from './chunk'
import { disconnected } from './connection'

let loading: Promise<typeof import('./socket')> | null = null

export function withSocket() {
  loading ??= fetched(read)
  return loading.then(({ socket }) => socket())
}

/** Opens a new socket with the current credentials: after signing in again. */
export function reopenSocket(): void {
  void loading?.then(({ reopenSocket }) => reopenSocket())
}

/** If it can't be loaded, no changes arrive: the panel counts as disconnected. */
async function read() {
  try {
    return await import('./socket')
  } catch (error) {
    disconnected()
    throw error
  }
}
