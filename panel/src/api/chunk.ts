// Parts of the panel that are fetched when they are needed. While the service is away they do not come: that is neither an
// error of the page nor final. No React here.
import { connectionNow, onReturn } from './connection'

const PAUSE_MS = 2_000
const MOST_REFUSALS = 2

/**
 * Fetches until it is there: `lazy(() => fetched(() => import('./part')))`. Gives up only if the service answers and the
 * part is still not there: a newer panel was installed, which app/page-failed says.
 */
export async function fetched<T>(load: () => Promise<T>): Promise<T> {
  for (let refusals = 0; ; ) {
    try {
      return await load()
    } catch (error) {
      if (connectionNow().state === 'live') refusals += 1
      if (refusals > MOST_REFUSALS) throw error
      await pause()
    }
  }
}

/** Until the connection is there again, and no longer than a moment. */
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
