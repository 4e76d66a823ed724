// What is being read at the moment: the queries of everything on the screen, for those who want the same from a program. And
// reading from the service what the cache may have from before. No React here.
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
/** The keys of queries that the service has not answered yet. */
const sent = new Set<number>()

export const requestsNow = () => [...reading.values()]

/** Stands before the cache, where a query is as the page has written it. */
export const requestsExchange: Exchange = mapExchange({
  onOperation(operation) {
    if (operation.kind === 'query') reading.set(operation.key, operation)
    else if (operation.kind === 'teardown') reading.delete(operation.key)
  },
})

/** Stands after the cache: what passes goes to the service. */
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
 * Asks the service, even if the cache has the answer. The client takes two equal requests for one, and one that was
 * sent before may not know yet what is looked for: another follows it.
 */
export async function readAnew<Data, Variables extends AnyVariables>(
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
