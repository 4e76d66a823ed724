// The GraphQL client: one record cache behind the sign-in, one endpoint, and the socket for subscriptions.
import { Client, type Exchange, fetchExchange, mapExchange, subscriptionExchange } from '@urql/core'
import { isSignedOut } from './errors'
import { withSocket } from './lazy-socket'
import { requestsExchange, sentExchange } from './requests'
import { sessionEnded } from './session'

/** Notices answers that say the user is signed out. The page keeps its content. */
const sessionExchange: Exchange = mapExchange({
  onError: (error) => {
    if (isSignedOut(error)) sessionEnded()
  },
})

const liveExchange: Exchange = subscriptionExchange({
  forwardSubscription: ({ query, variables }) => ({
    subscribe: (sink) => {
      let stopped = false
      let stop = () => {}
      // The client expects further answers after an error, unless told that none follows.
      const error = (problem: unknown) =>
        Array.isArray(problem) ? sink.next({ errors: problem, hasNext: false }) : sink.error(problem)
      void withSocket().then((socket) => {
        if (stopped) return
        stop = socket.subscribe(
          { query: query ?? '', variables: variables as Record<string, unknown> | undefined },
          { ...sink, error },
        )
      }, sink.error)
      return {
        unsubscribe: () => {
          stopped = true
          stop()
        },
      }
    },
  }),
})

/** A client that sends nothing once `over` is aborted. Each new user gets a new one, with an empty cache if any. */
export function makeClient(over: AbortSignal, cache?: Exchange): Client {
  return new Client({
    url: '/graphql',
    exchanges: [
      requestsExchange,
      ...(cache ? [cache] : []),
      sentExchange,
      sessionExchange,
      fetchExchange,
      liveExchange,
    ],
    preferGetMethod: false,
    fetch: (...asked: Parameters<typeof fetch>) =>
      over.aborted ? Promise.reject(over.reason) : fetch(...asked),
    // Shows cached data at once and refreshes it in the background.
    requestPolicy: 'cache-and-network',
    fetchOptions: () => ({
      credentials: 'same-origin',
      headers: { accept: 'application/graphql-response+json, application/json' },
    }),
  })
}
