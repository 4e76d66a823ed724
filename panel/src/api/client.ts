// The GraphQL client: one cache of records, one address, the socket for what is live.
import { Client, type Exchange, fetchExchange, mapExchange, subscriptionExchange } from '@urql/core'
import { cacheExchange } from '@urql/exchange-graphcache'
import { isSignedOut } from './errors'
import { keys } from './keys'
import { withSocket } from './lazy-socket'
import { requestsExchange, sentExchange } from './requests'
import { sessionEnded } from './session'

/** Tells the panel when an answer says that no one is signed in. The page keeps what it shows. */
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
      // The client takes a refusal for one answer of many, unless it knows that no other follows.
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

/** A client with an empty cache, which sends nothing once it is over. Someone else who signs in gets a new one. */
export function makeClient(over: AbortSignal): Client {
  return new Client({
    url: '/graphql',
    exchanges: [
      requestsExchange,
      cacheExchange({ keys }),
      sentExchange,
      sessionExchange,
      fetchExchange,
      liveExchange,
    ],
    preferGetMethod: false,
    fetch: (...asked: Parameters<typeof fetch>) =>
      over.aborted ? Promise.reject(over.reason) : fetch(...asked),
    // Shows what is cached at once, and reads it again in the background.
    requestPolicy: 'cache-and-network',
    fetchOptions: () => ({
      credentials: 'same-origin',
      headers: { accept: 'application/graphql-response+json, application/json' },
    }),
  })
}
