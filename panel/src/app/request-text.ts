// The requests of a page as text, to be run elsewhere. Pure, tested.

export interface Request {
  name: string
  /** A document of GraphQL with this one operation. */
  query: string
  variables: Record<string, unknown>
}

/** A document for each, with its variables as JSON in a comment. */
export const asGraphql = (requests: Request[]): string =>
  requests
    .map(({ query, variables }) => {
      const lines = JSON.stringify(variables, null, 2).split('\n')
      return `${query.trim()}\n\n# Variables:\n${lines.map((line) => `# ${line}`).join('\n')}\n`
    })
    .join('\n')

/** A command for each. The token comes from the environment, so that it stands in no history. */
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

/** Where the explorer shows a request. It runs nothing by itself. */
export const inExplorer = ({ query, variables }: Request): string =>
  `/graphql?${new URLSearchParams({ query: query.trim(), variables: JSON.stringify(variables, null, 2) })}`
