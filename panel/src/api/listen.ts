// Subscriptions that last. The service ends one when it stops or can't check a permission, and a session takes all of its own
// along: it begins again, until no one wants it. What was refused waits longer, unless something changes about the
// session. No React here.
import type { AnyVariables, Client, TypedDocumentNode } from '@urql/core'
import { onEnd, pipe, subscribe } from 'wonka'
import { problemsOf } from './errors'
import { onSession, sessionNow } from './session'

/** When what could not be done is tried again. */
export const RETRY_MS = 5_000
/** When what was refused is tried again: someone may have let the person in meanwhile. */
const REFUSED_MS = 60_000

/** What the service says to those who may not hear it. */
const REFUSALS = ['NOT_A_MEMBER', 'NOT_FOUND', 'PERMISSION_DENIED', 'SECOND_FACTOR_REQUIRED']

/** Calls back with all that a subscription tells, and when it is refused, until the returned function is called. */
export function listen<Data, Variables extends AnyVariables>(
  client: Client,
  document: TypedDocumentNode<Data, Variables>,
  variables: Variables,
  onData: (data: Data) => void,
  refused?: () => void,
): () => void {
  let stop = () => {}
  const begin = () => {
    let isOver = false
    let before: Data | undefined
    let isRefused = false
    const { unsubscribe } = pipe(
      client.subscription(document, variables),
      onEnd(() => {
        if (!isOver) stop = later(begin, isRefused ? REFUSED_MS : RETRY_MS)
      }),
      subscribe(({ data, error }) => {
        // An answer repeats the data and the errors of those before it.
        if (data && data !== before) {
          before = data
          isRefused = false
          onData(data)
        } else {
          isRefused = REFUSALS.includes(problemsOf(error).at(-1)?.code ?? '')
          if (isRefused) refused?.()
        }
      }),
    )
    stop = () => {
      isOver = true
      unsubscribe()
    }
  }
  begin()
  return () => stop()
}

/** Does something after a while, or as soon as something changes about the session; never while no one is signed in. */
function later(act: () => void, wait: number): () => void {
  const go = () => {
    if (sessionNow() !== 'in') return
    stop()
    act()
  }
  const timer = setTimeout(go, wait)
  const forget = onSession(go)
  const stop = () => {
    clearTimeout(timer)
    forget()
  }
  return stop
}
