// Creates a credential. Its kind suggests the fields.
import { useState } from 'react'
import { refusalsOf } from '../../api/bounds'
import { placeErrors } from '../../api/form-errors'
import { graphql } from '../../api/graphql'
import { useFormAct } from '../../api/use-form-act'
import { useOrg } from '../../app/organization'
import { Field } from '../../ui/field'
import { FormDialog } from '../../ui/form-dialog'
import { Select, TextArea, TextInput } from '../../ui/inputs'
import { LinesInput } from '../../ui/lines-input'
import { Notice } from '../../ui/notice'
import { words } from '../../ui/status'
import { KINDS, missingValues } from './kinds'

const Create = graphql(`
  mutation CreateCredential($orgId: Id!, $input: CreateCredentialInput!) {
    createCredential(orgId: $orgId, input: $input) { id name }
  }
`)

export function CreateCredential({
  onClose,
  onCreated,
}: {
  onClose: () => void
  onCreated: (id: number) => void
}) {
  const { id: orgId } = useOrg()
  const create = useFormAct(Create)
  const [name, setName] = useState('')
  const [kind, setKind] = useState('api-key')
  const [values, setValues] = useState<Record<string, string>>({})
  const [destinations, setDestinations] = useState<string[]>([])
  const [errors, setErrors] = useState<Record<string, string>>({})
  const [problem, setProblem] = useState<string | null>(null)
  const fields = KINDS.find(({ value }) => value === kind)?.fields ?? []
  const submit = async () => {
    const wrong = {
      ...refusalsOf('CreateCredentialInput', { name, destinations }),
      ...missingValues(fields, values),
    }
    setErrors(wrong)
    if (Object.keys(wrong).length > 0) return
    const input = {
      name,
      kind,
      destinations,
      fields: fields.map(({ label, type }) => ({ label, type, value: values[label] })),
    }
    const { data, error } = await create({ orgId, input }, { quiet: true, said: `Stored ${name}` })
    if (data?.createCredential) return onCreated(data.createCredential.id)
    const found = placeErrors(error, [
      'name',
      'kind',
      'destinations',
      ...fields.map((_, index) => `fields.${index}.value`),
    ])
    setErrors(found.errors)
    setProblem(found.problem)
  }
  return (
    <FormDialog
      title="New credential"
      width="md"
      action="Store the credential"
      busy={create.pending}
      onSubmit={submit}
      onClose={onClose}
      autoComplete="off"
    >
      <Field label="Name" error={errors.name}>
        <TextInput value={name} onValue={setName} autoComplete="off" />
      </Field>
      <Field label="Kind" doc="tools.md#how-it-is-used">
        <Select value={kind} onValue={setKind} options={KINDS} />
      </Field>
      {fields.map(({ label, type }, index) => (
        <Field key={`${kind}.${label}`} label={words(label)} error={errors[`fields.${index}.value`]}>
          {type === 'multiline' ? (
            <TextArea
              className="font-mono text-sm"
              spellCheck={false}
              value={values[label] ?? ''}
              onValue={(value) => setValues({ ...values, [label]: value })}
            />
          ) : (
            <TextInput
              type={type === 'secret' ? 'password' : 'text'}
              autoComplete={type === 'secret' ? 'new-password' : 'off'}
              value={values[label] ?? ''}
              onValue={(value) => setValues({ ...values, [label]: value })}
            />
          )}
        </Field>
      ))}
      <Field
        label="May be used for"
        doc="tools.md#how-it-is-used"
        hint="Addresses or hosts, one per line; mcp://NAME is an MCP server’s program. For http and https addresses the agent’s server adds it to requests, and the agent never sees it."
        optional
        error={errors.destinations ?? errors['destinations.0']}
      >
        <LinesInput
          value={destinations}
          onValue={setDestinations}
          placeholder="https://tickets.example.com"
        />
      </Field>
      {problem && <Notice>{problem}</Notice>}
    </FormDialog>
  )
}
