// A secret of several parts, such as Slack's two tokens: a field for each.
import { useState } from 'react'
import { Button } from '../../ui/button'
import { Field } from '../../ui/field'
import { TextInput } from '../../ui/inputs'
import type { SecretEdit } from '../../ui/secret-field'
import { joined, partsOf, type SecretPart } from './tokens'

interface Props {
  parts: readonly SecretPart[]
  isSet: boolean
  edit: SecretEdit
  onEdit: (edit: SecretEdit) => void
  error?: string | null
}

export function TokensField({ parts, isSet, edit, onEdit, error }: Props) {
  const [replacing, replace] = useState(false)
  if (isSet && !replacing && edit.kind === 'keep') {
    return (
      <div className="flex flex-wrap items-center gap-2">
        <p className="grow text-muted">The tokens are stored, and never shown.</p>
        <Button size="sm" onClick={() => replace(true)}>
          Replace
        </Button>
      </div>
    )
  }
  const values = partsOf(edit.kind === 'set' ? edit.value : '', parts.length)
  const put = (at: number, next: string) => {
    const text = joined(values.map((value, index) => (index === at ? next : value)))
    onEdit(text === '' ? { kind: 'keep' } : { kind: 'set', value: text })
  }
  return (
    <div className="space-y-4">
      {parts.map(({ label, hint }, at) => (
        <Field key={label} label={label} hint={hint} error={at === 0 ? error : null}>
          <TextInput
            type="password"
            value={values[at] ?? ''}
            onValue={(next) => put(at, next)}
            autoComplete="off"
            spellCheck={false}
            data-1p-ignore
            data-lpignore="true"
          />
        </Field>
      ))}
    </div>
  )
}
