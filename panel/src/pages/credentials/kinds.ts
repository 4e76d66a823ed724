// The kinds of credentials, and the usual fields of each.

export type FieldType = 'secret' | 'text' | 'url' | 'number' | 'boolean' | 'multiline' | 'json'

export interface NewField {
  label: string
  type: FieldType
}

interface Kind {
  value: string
  label: string
  fields: NewField[]
}

export const KINDS: Kind[] = [
  { value: 'api-key', label: 'API key', fields: [{ label: 'key', type: 'secret' }] },
  { value: 'bearer-token', label: 'Bearer token', fields: [{ label: 'token', type: 'secret' }] },
  {
    value: 'basic-auth',
    label: 'User and password',
    fields: [
      { label: 'user', type: 'text' },
      { label: 'password', type: 'secret' },
    ],
  },
  {
    value: 'oauth2',
    label: 'OAuth client',
    fields: [
      { label: 'client_id', type: 'text' },
      { label: 'client_secret', type: 'secret' },
    ],
  },
  { value: 'ssh-key', label: 'SSH key', fields: [{ label: 'private_key', type: 'multiline' }] },
  {
    value: 'certificate',
    label: 'Certificate',
    fields: [
      { label: 'certificate', type: 'multiline' },
      { label: 'private_key', type: 'multiline' },
    ],
  },
  { value: 'connection-string', label: 'Connection string', fields: [{ label: 'url', type: 'secret' }] },
  { value: 'custom', label: 'Something else', fields: [{ label: 'value', type: 'secret' }] },
]

export const FIELD_TYPES = [
  { value: 'secret', label: 'Secret, one line' },
  { value: 'multiline', label: 'Several lines' },
  { value: 'text', label: 'Text, not secret' },
  { value: 'url', label: 'Address' },
  { value: 'number', label: 'Number' },
  { value: 'boolean', label: 'Yes or no' },
  { value: 'json', label: 'JSON' },
] as const

/** The errors of fields without a value, by their paths in the input: a credential is of no use without them. */
export const missingValues = (fields: readonly NewField[], values: Readonly<Record<string, string>>) =>
  Object.fromEntries(
    fields.flatMap(({ label }, index) =>
      values[label] ? [] : [[`fields.${index}.value`, 'This can’t be empty.']],
    ),
  )

export const kindName = (value: string) => KINDS.find((kind) => kind.value === value)?.label ?? value
