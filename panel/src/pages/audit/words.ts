// Schema names in readable form.
import { words } from '../../ui/status'

/** `createAgent` → `Create agent`, `createMcpServer` → `Create MCP server`. */
export function spaced(name: string): string {
  const plain = name.replaceAll(/([a-z])([A-Z])/g, '$1 $2')
  return words(plain).replaceAll(/\bmcp\b/gi, 'MCP')
}

/** A changed field's value: short lists on one line, objects as stored. */
export function valueText(value: unknown): string {
  if (typeof value === 'string') return value
  if (Array.isArray(value) && value.every((item) => typeof item !== 'object'))
    return value.length === 0 ? 'nothing' : value.join(', ')
  return JSON.stringify(value, null, 1)
}
