// Loads parts of the panel on demand. While the service is down they can't load, which is neither a page error nor
// final. No React here.
import { connectionNow, onReturn } from './connection'

const PAUSE_MS = 2_000
const MAX_REFUSALS = 2

/**
 * Retries until loaded: `lazy(() => fetched(() => import('./part')))`. Gives up only if the service responds and the
 * part is still missing: a newer panel was installed, which app/page-failed explains.
 */
export async function fetched<T>(load: () => Promise<T>): Promise<T> {
  for (let refusals = 0; ; ) {
    try {
      return await load()
    } catch (error) {
      if (connectionNow().state === 'live') refusals += 1
      if (refusals > MAX_REFUSALS) throw error
      await pause()
    }
  }
}

/** Waits for the connection, but only briefly. */
function pause(): Promise<void> {
  return new Promise((resolve) => {
    const go = () => {
      clearTimeout(timer)
      stop()
      resolve()
    }
    const timer = setTimeout(go, PAUSE_MS)
    const stop = onReturn(go)
  })
}
