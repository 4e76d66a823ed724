// Issues a service token.
import { useState } from 'react'
import { boundsOf, refusal } from '../../api/bounds'
import { placeErrors } from '../../api/form-errors'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useOrg } from '../../app/organization'
import { Field } from '../../ui/field'
import { FormDialog } from '../../ui/form-dialog'
import { Select, TextInput } from '../../ui/inputs'
import { Notice } from '../../ui/notice'
import { expiryOf, LIFETIMES, type Lifetime } from './lifetime'
import { PermissionPicker } from './permission-picker'

const Create = graphql(`
  mutation CreateServiceToken($orgId: Id!, $input: CreateServiceTokenInput!) {
    createServiceToken(orgId: $orgId, input: $input) { id name token }
  }
`)

interface Props {
  onClose: () => void
  onIssued: (name: string, secret: string) => void
}

export function CreateToken({ onClose, onIssued }: Props) {
  const org = useOrg()
  const create = useAct(Create)
  const [name, setName] = useState('')
  const [permissions, setPermissions] = useState<string[]>([])
  const [lifetime, setLifetime] = useState<Lifetime>('DEFAULT')
  const [errors, setErrors] = useState<Record<string, string>>({})
  const [problem, setProblem] = useState<string | null>(null)
  const submit = async () => {
    const wrong = refusal(name, boundsOf('CreateServiceTokenInput.name'))
    if (wrong) return setErrors({ name: wrong })
    const input = { name, permissions: permissions as never[], ...expiryOf(lifetime, Date.now()) }
    const { data, error } = await create({ orgId: org.id, input }, { quiet: true })
    const made = data?.createServiceToken
    if (made?.token) return onIssued(made.name, made.token)
    const found = placeErrors(error, ['name', 'permissions', 'expiresAt'])
    setErrors(found.errors)
    setProblem(found.problem)
  }
  return (
    <FormDialog
      title="New service token"
      width="lg"
      action="Issue the token"
      busy={create.pending}
      onSubmit={submit}
      onClose={onClose}
    >
      <Field label="Name" hint="What the token is for." error={errors.name}>
        <TextInput value={name} onValue={setName} autoComplete="off" />
      </Field>
      <PermissionPicker value={permissions} onValue={setPermissions} error={errors.permissions} />
      <Field label="Works for" doc="keys.md#replacing-a-service-token" error={errors.expiresAt}>
        <Select value={lifetime} onValue={setLifetime} options={LIFETIMES} />
      </Field>
      {problem && <Notice>{problem}</Notice>}
    </FormDialog>
  )
}
