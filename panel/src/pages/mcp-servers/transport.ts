// How an MCP server is reached, and which fields that needs.

export type Transport = 'HTTP' | 'SSE' | 'STDIO'

export const TRANSPORTS = [
  { value: 'HTTP', label: 'At an address', hint: 'Streamable HTTP: what most servers speak today.' },
  { value: 'SSE', label: 'At an address, with server-sent events', hint: 'For older servers.' },
  {
    value: 'STDIO',
    label: 'As a command',
    hint: 'With secrets it runs apart from the agent, else in the agent’s sandbox.',
  },
] as const

/** What is sent: the fields of the other way are cleared. */
export function reached(transport: Transport, url: string, command: string, args: readonly string[]) {
  return transport === 'STDIO'
    ? { transport, command, args: [...args], url: null }
    : { transport, url, command: null, args: [] }
}
