// Palette actions for the current page's requests: copy them, or open one in the explorer.
import { getOperationName, stringifyDocument } from '@urql/core'
import { requestsNow } from '../api/requests'
import type { Action } from '../keys/registry'
import { copyText } from '../ui/copy'
import { say, sayProblem } from '../ui/toast-store'
import { asCurl, asGraphql, inExplorer, type Request } from './request-text'

/** Prefix of the names of queries that the shell and the palette use on every page. */
const OF_THE_SHELL = 'Shell'

export function requestActions(): Action[] {
  const requests = requestsOfPage()
  if (requests.length === 0) return []
  const group = 'Requests of this page'
  return [
    {
      id: 'requests.graphql',
      label: 'Copy as GraphQL',
      group,
      also: 'api query',
      run: () => void copy(asGraphql(requests)),
    },
    {
      id: 'requests.curl',
      label: 'Copy as curl',
      group,
      also: 'api command',
      run: () => void copy(asCurl(requests, `${location.origin}/graphql`)),
    },
    ...requests.map((request) => ({
      id: `requests.explorer.${request.name}`,
      label: `Open ${request.name} in the explorer`,
      group,
      also: 'api graphql',
      run: () => void window.open(inExplorer(request), '_blank', 'noopener'),
    })),
  ]
}

function requestsOfPage(): Request[] {
  const all = requestsNow().map(({ query, variables }) => ({
    name: getOperationName(query) ?? '',
    query: stringifyDocument(query),
    variables: variables as Record<string, unknown>,
  }))
  // For a paginated list, only the first page.
  const first = all.filter(({ name }, index) => all.findIndex((other) => other.name === name) === index)
  return first.filter(({ name }) => name !== '' && !name.startsWith(OF_THE_SHELL))
}

async function copy(text: string): Promise<void> {
  if (await copyText(text)) say('Copied')
  else sayProblem('The browser did not allow copying.')
}
