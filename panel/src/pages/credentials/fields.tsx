// The fields of a credential. A value can be set, replaced and removed, but never read.
import { Plus, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { refusalsOf } from '../../api/bounds'
import { wordsOf } from '../../api/errors'
import { fieldErrors } from '../../api/form-errors'
import { useAct } from '../../api/use-act'
import { useOrg } from '../../app/organization'
import { Gate } from '../../permissions/gate'
import { Button, IconButton } from '../../ui/button'
import { ConfirmDialog } from '../../ui/confirm'
import { Field } from '../../ui/field'
import { FormDialog } from '../../ui/form-dialog'
import { Select, TextArea, TextInput } from '../../ui/inputs'
import { Notice } from '../../ui/notice'
import { Panel } from '../../ui/panel'
import { Visible } from '../../ui/visible'
import { type Credential, UpdateCredential } from './credential-peek'
import { FIELD_TYPES, type FieldType } from './kinds'

/** A field in the update's list. Without `value` the stored one is kept; null removes it. */
interface Sent {
  label: string
  type?: FieldType
  value?: string | null
}

export function Fields({ credential }: { credential: Credential }) {
  const { id: orgId } = useOrg()
  const update = useAct(UpdateCredential)
  const [editing, edit] = useState<{ label: string; type: FieldType } | 'new' | null>(null)
  const [deleting, ask] = useState<string | null>(null)
  const kept: Sent[] = credential.fields.map(({ label }) => ({ label }))
  // Sends the whole list with the changed values; the revision keeps it from overwriting someone else's change.
  const send = (fields: Sent[], said: string) =>
    update(
      { orgId, id: credential.id, ifRevision: credential.revision, input: { fields } },
      { said, quiet: true },
    )
  const set = (field: Sent) =>
    send(
      kept.some(({ label }) => label === field.label)
        ? kept.map((known) => (known.label === field.label ? field : known))
        : [...kept, field],
      `Stored ${field.label}`,
    )
  return (
    <Panel
      title="Fields"
      actions={
        <Gate on={credential} may="credential.edit">
          <Button size="sm" icon={Plus} onClick={() => edit('new')}>
            Add a field
          </Button>
        </Gate>
      }
    >
      {credential.fields.length === 0 && <p className="text-muted">No fields yet. Add the first one.</p>}
      <ul className="divide-y divide-line rounded-card border border-line empty:hidden">
        {credential.fields.map(({ id, label, type, hasValue }) => (
          <li key={id} className="flex items-center gap-2 px-3 py-1.5">
            <span className="min-w-0 grow truncate font-medium">
              <Visible text={label} />
            </span>
            <span className="text-sm text-muted">{hasValue ? 'stored' : 'no value yet'}</span>
            <Gate on={credential} may="credential.edit">
              <Button size="sm" onClick={() => edit({ label, type })}>
                {hasValue ? 'Replace' : 'Set'}
              </Button>
              <IconButton icon={Trash2} size="sm" label={`Delete ${label}`} onClick={() => ask(label)} />
            </Gate>
          </li>
        ))}
      </ul>
      {editing && (
        <FieldDialog editing={editing} onClose={() => edit(null)} onSet={set} busy={update.pending} />
      )}
      <ConfirmDialog
        open={deleting !== null}
        onClose={() => ask(null)}
        title={`Delete ${deleting}?`}
        action="Delete the field"
        busy={update.pending}
        onConfirm={async () => {
          await send(
            kept.filter(({ label }) => label !== deleting),
            `Deleted ${deleting}`,
          )
          ask(null)
        }}
      >
        Its value goes with it. This can’t be undone.
      </ConfirmDialog>
    </Panel>
  )
}

interface DialogProps {
  editing: { label: string; type: FieldType } | 'new'
  onClose: () => void
  onSet: (field: Sent) => Promise<{ error: Parameters<typeof wordsOf>[0] }>
  busy: boolean
}

function FieldDialog({ editing, onClose, onSet, busy }: DialogProps) {
  const isNew = editing === 'new'
  const [label, setLabel] = useState(isNew ? '' : editing.label)
  const [type, setType] = useState<FieldType>(isNew ? 'secret' : editing.type)
  const [value, setValue] = useState('')
  const [errors, setErrors] = useState<Record<string, string>>({})
  const [problem, setProblem] = useState<string | null>(null)
  const submit = async () => {
    const wrong = {
      ...refusalsOf('CredentialFieldInput', { label }),
      ...(value === '' && { value: 'Type a value.' }),
    }
    setErrors(wrong)
    if (Object.keys(wrong).length > 0) return
    const { error } = await onSet({ label, type, value })
    if (!error) return onClose()
    setProblem(Object.values(fieldErrors(error))[0] ?? wordsOf(error))
  }
  const isLong = type === 'multiline' || type === 'json'
  return (
    <FormDialog
      title={isNew ? 'Add a field' : `Replace ${editing.label}`}
      about="The value is stored sealed and never shown again."
      action="Store"
      busy={busy}
      onSubmit={submit}
      onClose={onClose}
    >
      {isNew && (
        <>
          <Field label="Label" error={errors.label}>
            <TextInput value={label} onValue={setLabel} autoComplete="off" />
          </Field>
          <Field label="Type">
            <Select value={type} onValue={setType} options={FIELD_TYPES} />
          </Field>
        </>
      )}
      <Field label="Value" error={errors.value}>
        {isLong ? (
          <TextArea className="font-mono text-sm" spellCheck={false} value={value} onValue={setValue} />
        ) : (
          <TextInput
            type={type === 'secret' ? 'password' : 'text'}
            autoComplete={type === 'secret' ? 'new-password' : 'off'}
            value={value}
            onValue={setValue}
          />
        )}
      </Field>
      {problem && <Notice>{problem}</Notice>}
    </FormDialog>
  )
}
