// A secret can be set, replaced and removed, but never read: the service does not return it.
import { KeyRound } from 'lucide-react'
import { useId, useState } from 'react'
import { Button } from './button'
import { Field } from './field'
import { TextArea, TextInput } from './inputs'

/** The pending change: keep, replace or remove. */
export type SecretEdit = { kind: 'keep' } | { kind: 'set'; value: string } | { kind: 'remove' }

/** The input value: a string replaces the secret, null removes it, undefined keeps it. */
export function secretInput(edit: SecretEdit): string | null | undefined {
  return edit.kind === 'set' ? edit.value : edit.kind === 'remove' ? null : undefined
}

interface Props {
  label: string
  /** Whether the service has a value. */
  isSet: boolean
  edit: SecretEdit
  onEdit: (edit: SecretEdit) => void
  removable?: boolean
  multiline?: boolean
  optional?: boolean
  hint?: string
  error?: string | null
}

export function SecretField(props: Props) {
  const { label, isSet, edit, onEdit, removable = true, multiline, optional, hint, error } = props
  const [editing, setEditing] = useState(false)
  const id = useId()
  const value = edit.kind === 'set' ? edit.value : ''
  if (edit.kind === 'set' || editing || !isSet) {
    const Input = multiline ? TextArea : TextInput
    return (
      <Field
        label={label}
        error={error}
        optional={optional}
        hint={hint ?? (isSet ? 'Replaces the stored value.' : 'Stored sealed and never shown again.')}
        aside={
          isSet && (
            <Button
              size="sm"
              look="quiet"
              onClick={() => {
                setEditing(false)
                onEdit({ kind: 'keep' })
              }}
            >
              Keep the old value
            </Button>
          )
        }
      >
        <Input
          value={value}
          onValue={(next: string) => onEdit(next === '' ? { kind: 'keep' } : { kind: 'set', value: next })}
          {...(multiline ? {} : { type: 'password' })}
          autoComplete="off"
          spellCheck={false}
          data-1p-ignore
          data-lpignore="true"
        />
      </Field>
    )
  }
  const removed = edit.kind === 'remove'
  return (
    <fieldset aria-describedby={error ? `${id}-error` : undefined}>
      <legend className="mb-1 text-sm font-medium">{label}</legend>
      <div className="flex flex-wrap items-center gap-2 rounded-control border border-line bg-sunken px-2.5 py-1.5">
        <KeyRound size={14} aria-hidden className="text-faint" />
        <span className="grow text-muted">
          {removed ? 'Will be removed when you save.' : 'Stored. The value is never shown.'}
        </span>
        {removed ? (
          <Button size="sm" look="quiet" onClick={() => onEdit({ kind: 'keep' })}>
            Keep
          </Button>
        ) : (
          <>
            <Button size="sm" onClick={() => setEditing(true)}>
              Replace
            </Button>
            {removable && (
              <Button size="sm" look="quiet" onClick={() => onEdit({ kind: 'remove' })}>
                Remove
              </Button>
            )}
          </>
        )}
      </div>
      {error && (
        <p id={`${id}-error`} role="alert" className="mt-1 text-xs font-medium text-danger-text">
          {error}
        </p>
      )}
    </fieldset>
  )
}
