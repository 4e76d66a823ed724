// Exports a page's requests as text, to run them elsewhere. Pure, tested.

export interface Request {
  name: string
  /** A GraphQL document with only this operation. */
  query: string
  variables: Record<string, unknown>
}

/** One document per request, with its variables as JSON in a comment. */
export const asGraphql = (requests: Request[]): string =>
  requests
    .map(({ query, variables }) => {
      const lines = JSON.stringify(variables, null, 2).split('\n')
      return `${query.trim()}\n\n# Variables:\n${lines.map((line) => `# ${line}`).join('\n')}\n`
    })
    .join('\n')

/** One command per request. The token comes from the environment, so that it stays out of the shell's history. */
export function asCurl(requests: Request[], address: string): string {
  const commands = requests.map(({ name, query, variables }) => {
    const body = JSON.stringify({ query: query.trim(), variables })
    return [
      `# ${name}`,
      `curl --fail-with-body --silent --show-error --write-out '\\n' ${address} \\`,
      `  --header "authorization: Bearer $MUSTER_TOKEN" \\`,
      `  --header 'content-type: application/json' --data-binary @- <<'END'`,
      body,
      'END',
      '',
    ].join('\n')
  })
  return `# MUSTER_TOKEN is a service token: the page “Service tokens” makes one.\n\n${commands.join('\n')}`
}

/** The explorer's address for a request. It does not run on opening. */
export const inExplorer = ({ query, variables }: Request): string =>
  `/graphql?${new URLSearchParams({ query: query.trim(), variables: JSON.stringify(variables, null, 2) })}`
