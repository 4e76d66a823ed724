// The fix that removes an approval's cause and closes it: a higher limit, or an allowed host. Pure, tested.
import type { ApprovalRecord } from './fields'

export type Fix =
  | { what: 'spending'; kind: 'money' | 'tokens'; proposed: number; agentId: number | null }
  | { what: 'host'; host: string; port: number }

/** The tool name of connection requests. */
const NETWORK = 'network'

export const isConnection = ({ request }: Pick<ApprovalRecord, 'request'>) => request?.tool === NETWORK

export function fixOf({ spending, request }: Pick<ApprovalRecord, 'spending' | 'request'>): Fix | null {
  if (spending) {
    const { agentId, costMicro, tokens } = spending
    if (tokens !== null) return { what: 'spending', kind: 'tokens', proposed: tokens, agentId }
    if (costMicro !== null) return { what: 'spending', kind: 'money', proposed: Number(costMicro), agentId }
  }
  return isConnection({ request }) ? hostOf(request?.input) : null
}

function hostOf(input: unknown): Fix | null {
  if (typeof input !== 'object' || input === null || !('host' in input) || !('port' in input)) return null
  const { host, port } = input
  return typeof host === 'string' && typeof port === 'number' ? { what: 'host', host, port } : null
}
