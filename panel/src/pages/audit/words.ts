// Schema names in readable form.
import { stateOf, words } from '../../ui/status'

/** Operations whose names don't read as an action. */
const OPERATIONS: Record<string, string> = {
  backupAgent: 'Back up agent',
  endLateStart: 'End a start that took too long',
  judgeAction: 'Check an action',
  seed: 'Add sample data',
}

/** `createAgent` → `Create agent`, `createMcpServer` → `Create MCP server`. */
export function spaced(name: string): string {
  return OPERATIONS[name] ?? words(name.replaceAll(/([a-z])([A-Z])/g, '$1 $2'))
}

/** Fields whose values are names of the schema, such as `WAITING_LIMIT`. */
const NAMED =
  /(^|_)(status|status_reason|state|role|outcome|severity|kind|transport|mode|policy|action|plan)$/
const STATES = ['agent', 'approval', 'turn', 'server', 'conversation'] as const

/** A changed field's value: names of the schema as words, short lists on one line, objects as stored. */
export function valueText(value: unknown, field: string, targetKind: string | null): string {
  if (typeof value === 'string' && NAMED.test(field) && /^[A-Z][A-Z0-9_]*$/.test(value)) {
    const of = STATES.find((kind) => kind === targetKind)
    const isState = of && ['status', 'state', 'outcome'].includes(field)
    return isState ? stateOf(of, value).word : words(value)
  }
  if (typeof value === 'string') return value
  if (Array.isArray(value) && value.every((item) => typeof item !== 'object'))
    return value.length === 0 ? 'nothing' : value.join(', ')
  return JSON.stringify(value, null, 1)
}

/** How an approval was decided, if the entry is about that: `APPROVED`. */
export function decisionOf({ operation, fields }: Decided): string | null {
  if (!/^(answer|resolve|dismiss)Approval$/.test(operation)) return null
  const outcome = fields.find(({ field }) => field === 'outcome')?.after
  return typeof outcome === 'string' ? outcome : null
}

interface Decided {
  operation: string
  fields: readonly { field: string; after: unknown }[]
}
