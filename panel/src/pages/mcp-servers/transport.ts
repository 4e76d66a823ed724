// The transports of MCP servers, and the fields of each.

export type Transport = 'HTTP' | 'SSE' | 'STDIO'

export const TRANSPORTS = [
  { value: 'HTTP', label: 'By URL', hint: 'Streamable HTTP: what most servers speak today.' },
  { value: 'SSE', label: 'By URL, with server-sent events', hint: 'For older servers.' },
  {
    value: 'STDIO',
    label: 'By command',
    hint: 'With secrets, the command runs apart from the agent, otherwise in the agent’s sandbox.',
  },
] as const

/** The input: the other transport's fields are cleared. */
export function transportInput(transport: Transport, url: string, command: string, args: readonly string[]) {
  return transport === 'STDIO'
    ? { transport, command, args: [...args], url: null }
    : { transport, url, command: null, args: [] }
}
