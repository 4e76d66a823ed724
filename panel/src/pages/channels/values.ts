// Converts between form fields, a channel's record, and the service's input.
import { type SecretEdit, secretInput } from '../../ui/secret-field'
import type { FieldSpec } from './transports'

/** The initial value for a new channel. */
export function initialOf(field: FieldSpec): unknown {
  switch (field.kind) {
    case 'lines':
      return []
    case 'flag':
      return field.path === 'email.imap.tls'
    case 'secret':
      return { kind: 'keep' } satisfies SecretEdit
    case 'number':
      return field.initial ?? null
    case 'choice':
      return field.options[0]?.value
    default:
      return null
  }
}

/** The record's value at a path. Secrets have none, and calendars are lines. */
export function storedOf(record: object, field: FieldSpec): unknown {
  if (field.kind === 'secret') return initialOf(field)
  const found = at(record, field.path)
  if (field.path === 'calendar.calendarWhitelist')
    return ((found ?? []) as { id: string; name: string | null }[]).map(calendarLine)
  return found ?? initialOf(field)
}

/** `{ 'email.imap.host': 'a' }` → `{ email: { imap: { host: 'a' } } }`, with values converted for the service. */
export function inputOf(values: Record<string, unknown>): Record<string, unknown> {
  const input: Record<string, unknown> = {}
  for (const [path, value] of Object.entries(values)) {
    const names = path.split('.')
    const last = names.pop() as string
    let inner = input
    for (const name of names) {
      inner[name] ??= {}
      inner = inner[name] as Record<string, unknown>
    }
    const sent = sentOf(path, value)
    if (sent !== undefined) inner[last] = sent
  }
  return input
}

function sentOf(path: string, value: unknown): unknown {
  if (isSecret(value)) return secretInput(value)
  if (path === 'calendar.calendarWhitelist') return (value as string[]).map(calendarOf)
  return value
}

function at(record: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>((inner, name) => (inner as Record<string, unknown> | null | undefined)?.[name], record)
}

const calendarLine = ({ id, name }: { id: string; name: string | null }) =>
  name && name !== id ? `${id}, ${name}` : id

function calendarOf(line: string): { id: string; name?: string } {
  const [id = '', ...rest] = line.split(',')
  const name = rest.join(',').trim()
  return { id: id.trim(), ...(name && { name }) }
}

function isSecret(value: unknown): value is SecretEdit {
  return (
    typeof value === 'object' &&
    value !== null &&
    'kind' in value &&
    ['keep', 'set', 'remove'].includes(String(value.kind))
  )
}
