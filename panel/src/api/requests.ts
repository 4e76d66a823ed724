// The queries of everything on screen, for users who want to repeat them in a program; and reads that bypass the cache.
// No React here.
import {
  type AnyVariables,
  type Client,
  createRequest,
  type Exchange,
  mapExchange,
  type Operation,
  type OperationResult,
  type TypedDocumentNode,
} from '@urql/core'

const reading = new Map<number, Operation>()
/** Keys of queries that the service has not answered yet. */
const sent = new Set<number>()

export const requestsNow = () => [...reading.values()]

/** Placed before the cache, where queries are as the page wrote them. */
export const requestsExchange: Exchange = mapExchange({
  onOperation(operation) {
    if (operation.kind === 'query') reading.set(operation.key, operation)
    else if (operation.kind === 'teardown') reading.delete(operation.key)
  },
})

/** Placed after the cache: queries that get here go to the service. */
export const sentExchange: Exchange = mapExchange({
  onOperation({ kind, key }) {
    if (kind === 'query') sent.add(key)
    else if (kind === 'teardown') sent.delete(key)
  },
  onResult({ operation }) {
    sent.delete(operation.key)
  },
})

/**
 * Asks the service even if the cache has the answer. The client merges equal requests, and one sent earlier may predate
 * the change in question: another one follows it.
 */
export async function readFresh<Data, Variables extends AnyVariables>(
  client: Client,
  query: TypedDocumentNode<Data, Variables>,
  variables: Variables,
): Promise<OperationResult<Data, Variables>> {
  const request = createRequest(query, variables)
  const read = () =>
    client.executeQuery<Data, Variables>(request, { requestPolicy: 'network-only' }).toPromise()
  if (sent.has(request.key)) await read()
  return read()
}
