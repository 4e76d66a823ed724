// Creates a model credential, replaces its key, or edits its other fields.
import { useState } from 'react'
import { type BoundsKey, boundsOf, refusal } from '../../api/bounds'
import { placeErrors } from '../../api/form-errors'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useFormAct } from '../../api/use-form-act'
import { PROVIDERS } from '../../app/models'
import { useOrg } from '../../app/organization'
import { Checkbox } from '../../ui/choices'
import { Field } from '../../ui/field'
import { FormDialog } from '../../ui/form-dialog'
import { TextInput } from '../../ui/inputs'
import { Notice } from '../../ui/notice'
import { SuggestedInput } from '../../ui/suggested-input'
import type { ModelCredential } from './model-credentials'

const Create = graphql(`
  mutation CreateModelCredential($orgId: Id!, $input: CreateModelCredentialInput!) {
    createModelCredential(orgId: $orgId, input: $input) { id name }
  }
`)
export const UpdateModelCredential = graphql(`
  mutation UpdateModelCredential($orgId: Id!, $id: Id!, $ifRevision: Int, $input: UpdateModelCredentialInput!) {
    updateModelCredential(orgId: $orgId, id: $id, ifRevision: $ifRevision, input: $input) {
      id name provider baseUrl isDefault hasSecret limitedUntil limitDetail authFailedAt revision
    }
  }
`)

export type Editing =
  | { what: 'new' }
  /** Replaces the key. */
  | { what: 'key'; credential: ModelCredential }
  /** Edits everything except the key, unless its address changes. */
  | { what: 'rest'; credential: ModelCredential }

interface Values {
  name: string
  provider: string
  baseUrl: string
  secret: string
}
type Named = keyof Values

const BOUNDS: Record<Named, BoundsKey> = {
  name: 'CreateModelCredentialInput.name',
  provider: 'CreateModelCredentialInput.provider',
  baseUrl: 'CreateModelCredentialInput.baseUrl',
  secret: 'CreateModelCredentialInput.secret',
}

/** The visible fields of the form, and the required ones. */
function partsOf(editing: Editing, values: Values): { shown: Named[]; needed: Named[] } {
  if (editing.what === 'key') return { shown: ['secret'], needed: ['secret'] }
  if (editing.what === 'new') {
    return { shown: ['name', 'provider', 'baseUrl', 'secret'], needed: ['name', 'provider', 'secret'] }
  }
  // A stored key is never sent to an address it was not entered for.
  const moves = values.baseUrl !== (editing.credential.baseUrl ?? '')
  return {
    shown: ['name', 'provider', 'baseUrl', ...(moves ? (['secret'] as const) : [])],
    needed: ['name', 'provider', ...(moves ? (['secret'] as const) : [])],
  }
}

interface Props {
  editing: Editing
  onClose: () => void
  onChanged: () => void
}

export function ModelCredentialDialog({ editing, onClose, onChanged }: Props) {
  const { id: orgId } = useOrg()
  const [create, update] = [useFormAct(Create), useAct(UpdateModelCredential)]
  const known = editing.what === 'new' ? null : editing.credential
  const [values, setValues] = useState<Values>({
    name: known?.name ?? '',
    provider: known?.provider ?? '',
    baseUrl: known?.baseUrl ?? '',
    secret: '',
  })
  const [isDefault, setDefault] = useState(false)
  const [errors, setErrors] = useState<Record<string, string>>({})
  const [problem, setProblem] = useState<string | null>(null)
  const { shown, needed } = partsOf(editing, values)
  const send = () => {
    const sent = Object.fromEntries(shown.map((name) => [name, values[name] || null]))
    if (!known)
      return create({ orgId, input: { ...sent, isDefault } as never }, { quiet: true, said: SAID.new })
    const ifRevision = editing.what === 'rest' ? known.revision : undefined
    return update(
      { orgId, id: known.id, ifRevision, input: sent as never },
      { quiet: true, said: SAID[editing.what] },
    )
  }
  const submit = async () => {
    const wrong = shown
      .filter((name) => needed.includes(name) || values[name])
      .flatMap((name) => {
        const text = refusal(values[name], boundsOf(BOUNDS[name]))
        return text ? [[name, text]] : []
      })
    setErrors(Object.fromEntries(wrong))
    if (wrong.length > 0) return
    const { error } = await send()
    if (!error) {
      onChanged()
      return onClose()
    }
    const found = placeErrors(error, shown)
    setErrors(found.errors)
    setProblem(found.problem)
  }
  const field = (name: Named) => ({
    value: values[name],
    onValue: (value: string) => setValues((before) => ({ ...before, [name]: value })),
    autoComplete: 'off',
    spellCheck: false,
  })
  const has = (name: Named) => shown.includes(name)
  return (
    <FormDialog
      title={
        known
          ? `${editing.what === 'key' ? 'Replace the key of' : 'Edit'} ${known.name}`
          : 'New model credential'
      }
      action={known ? 'Save' : 'Store'}
      may="organization.edit"
      busy={create.pending || update.pending}
      onSubmit={submit}
      onClose={onClose}
      autoComplete="off"
    >
      {has('name') && (
        <Field label="Name" error={errors.name}>
          <TextInput {...field('name')} />
        </Field>
      )}
      {has('provider') && (
        <Field label="Provider" hint="Such as anthropic or openai." error={errors.provider}>
          <SuggestedInput suggestions={PROVIDERS} {...field('provider')} />
        </Field>
      )}
      {has('baseUrl') && (
        <Field
          label="API address"
          doc="hosts.md#networks-that-agents-may-reach"
          hint="Empty: the provider’s own."
          optional
          error={errors.baseUrl}
        >
          <TextInput type="url" {...field('baseUrl')} />
        </Field>
      )}
      {has('secret') && (
        <Field label="Key" hint={keyHint(editing)} error={errors.secret}>
          <TextInput
            {...field('secret')}
            type="password"
            autoComplete="new-password"
            data-1p-ignore
            data-lpignore="true"
          />
        </Field>
      )}
      {editing.what === 'new' && (
        <Checkbox
          label="Default for this provider"
          hint="Agents without their own credential get it if they use this provider. It replaces another default."
          checked={isDefault}
          onChecked={setDefault}
        />
      )}
      {problem && <Notice>{problem}</Notice>}
    </FormDialog>
  )
}

const SAID = { new: 'The key is stored', key: 'The key is replaced', rest: 'Saved' }

function keyHint({ what }: Editing): string {
  if (what === 'rest') return 'The address has changed, so enter the key again.'
  if (what === 'key') return 'Running agents use the new key at once. The old one is deleted.'
  return 'It is stored sealed and never shown again.'
}
