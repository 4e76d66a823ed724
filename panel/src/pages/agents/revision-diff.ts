// The differences between two revisions, field by field. No React here.
import type { Json } from '../../api/graphql'

export interface FieldChange {
  field: string
  /** A readable name: `approval_ask_threshold` → "Approval ask threshold". */
  label: string
  before: Json
  after: Json
}

/** The fields with different values, sorted by name. A missing field counts as null. */
export function differences(before: Json, after: Json): FieldChange[] {
  const [old, now] = [recordOf(before), recordOf(after)]
  return [...new Set([...Object.keys(old), ...Object.keys(now)])]
    .sort()
    .filter((field) => canonical(old[field]) !== canonical(now[field]))
    .map((field) => ({ field, label: labelOf(field), before: old[field] ?? null, after: now[field] ?? null }))
}

/** A readable value; null where nothing is set. */
export function valueText(value: Json): string | null {
  if (value === null || value === '') return null
  if (typeof value === 'boolean') return value ? 'Yes' : 'No'
  if (typeof value === 'string') return value
  if (Array.isArray(value) && value.every((item) => typeof item !== 'object')) {
    return value.length === 0 ? null : value.join('\n')
  }
  return JSON.stringify(value, null, 2)
}

export function labelOf(field: string): string {
  const words = field
    .replaceAll('_', ' ')
    .replaceAll(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .replace(/\bmcp\b/, 'MCP')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

function recordOf(value: Json): Record<string, Json> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}
}

/** A canonical form: equal values give equal text, regardless of key order. */
function canonical(value: Json | undefined): string {
  if (value === undefined || value === null) return 'null'
  if (typeof value !== 'object') return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
  const entries = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`)
  return `{${entries.join()}}`
}
