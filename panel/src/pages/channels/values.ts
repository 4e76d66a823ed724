// Converts between form fields, a channel's record, and the service's input.
import { type SecretEdit, secretInput } from '../../ui/secret-field'
import { partsOf } from './tokens'
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
    case 'choice':
      return field.options[0]?.value
    case 'number':
      return field.initial ?? null
    default:
      return null
  }
}

/** The record's value at a path. Secrets have none. */
export function storedOf(record: object, field: FieldSpec): unknown {
  if (field.kind === 'secret') return initialOf(field)
  return at(record, field.path) ?? initialOf(field)
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
    const sent = isSecret(value) ? secretInput(value) : value
    if (sent !== undefined) inner[last] = sent
  }
  return input
}

function at(record: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>((inner, name) => (inner as Record<string, unknown> | null | undefined)?.[name], record)
}

/** Why a required field is not complete; null if it is. */
export function missing(field: FieldSpec, value: unknown): string | null {
  if (field.kind === 'secret') {
    const text = isSecret(value) && value.kind === 'set' ? value.value : ''
    if (field.parts && text !== '') {
      const isWhole = partsOf(text, field.parts.length).every((part) => part !== '')
      return isWhole
        ? null
        : `Enter both: ${field.parts.map(({ label }) => label.toLowerCase()).join(' and ')}.`
    }
    return field.optional || text !== '' ? null : 'This can’t be empty.'
  }
  return field.kind === 'number' && !field.optional && value === null ? 'This can’t be empty.' : null
}

function isSecret(value: unknown): value is SecretEdit {
  return (
    typeof value === 'object' &&
    value !== null &&
    'kind' in value &&
    ['keep', 'set', 'remove'].includes(String(value.kind))
  )
}
