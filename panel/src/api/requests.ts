// What is being read at the moment: the queries of everything on the screen. For those who want the same from a program.
import { type Exchange, mapExchange, type Operation } from '@urql/core'

const reading = new Map<number, Operation>()

export const requestsNow = () => [...reading.values()]

/** Stands before the cache, where a query is as the page has written it. */
export const requestsExchange: Exchange = mapExchange({
  onOperation(operation) {
    if (operation.kind === 'query') reading.set(operation.key, operation)
    else if (operation.kind === 'teardown') reading.delete(operation.key)
  },
})
