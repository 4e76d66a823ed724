// Lasting subscriptions. The service ends one when it stops or can't check a permission, and the end of a session ends
// all of its own: each restarts until it is unsubscribed. A refused one waits longer, unless the session changes. No
// React here.
import type { AnyVariables, Client, TypedDocumentNode } from '@urql/core'
import { onEnd, pipe, subscribe } from 'wonka'
import { problemsOf } from './errors'
import { onSession, sessionNow } from './session'

/** Delay before retrying after a failure. */
export const RETRY_MS = 5_000
/** Delay before retrying after a refusal: someone may have granted access meanwhile. */
const REFUSED_MS = 60_000

/** The codes that deny a subscription. */
const REFUSALS = ['NOT_A_MEMBER', 'NOT_FOUND', 'PERMISSION_DENIED', 'SECOND_FACTOR_REQUIRED']

/** Calls back with each event of a subscription, and on refusals, until the returned function is called. */
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
        // Each answer repeats the data and errors of the previous ones.
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

/** Acts after a delay, or as soon as the session changes; never while signed out. */
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
