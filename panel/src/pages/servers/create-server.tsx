// Creates a server: a name for a machine that will join.
import { useState } from 'react'
import { refusalsOf } from '../../api/bounds'
import { placeErrors } from '../../api/form-errors'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useOrg } from '../../app/organization'
import { Field } from '../../ui/field'
import { FormDialog } from '../../ui/form-dialog'
import { TextInput } from '../../ui/inputs'
import { Notice } from '../../ui/notice'
import type { Fresh } from './provisioned'

const Create = graphql(`
  mutation CreateServer($orgId: Id!, $input: CreateServerInput!) {
    createServer(orgId: $orgId, input: $input) { id name provisioningToken }
  }
`)

export function CreateServer({
  onClose,
  onCreated,
}: {
  onClose: () => void
  onCreated: (server: Fresh) => void
}) {
  const { id: orgId } = useOrg()
  const create = useAct(Create)
  const [input, setInput] = useState({ name: '', region: '', description: '' })
  const [errors, setErrors] = useState<Record<string, string>>({})
  const [problem, setProblem] = useState<string | null>(null)
  const set = (change: Partial<typeof input>) => setInput({ ...input, ...change })
  const submit = async () => {
    const sent = { name: input.name, region: input.region || null, description: input.description || null }
    const wrong = refusalsOf('CreateServerInput', sent)
    setErrors(wrong)
    if (Object.keys(wrong).length > 0) return
    const { data, error } = await create({ orgId, input: sent }, { quiet: true })
    const made = data?.createServer
    if (made) return onCreated({ id: made.id, name: made.name, token: made.provisioningToken ?? '' })
    const found = placeErrors(error, ['name', 'region', 'description'])
    setErrors(found.errors)
    setProblem(found.problem)
  }
  return (
    <FormDialog
      title="New server"
      about="A server is your own machine. It connects to Muster and needs no open port."
      action="Create the server"
      busy={create.pending}
      onSubmit={submit}
      onClose={onClose}
    >
      <Field label="Name" error={errors.name}>
        <TextInput value={input.name} onValue={(name) => set({ name })} autoComplete="off" />
      </Field>
      <Field label="Location" optional error={errors.region}>
        <TextInput value={input.region} onValue={(region) => set({ region })} autoComplete="off" />
      </Field>
      <Field label="Description" optional error={errors.description}>
        <TextInput value={input.description} onValue={(description) => set({ description })} />
      </Field>
      {problem && <Notice>{problem}</Notice>}
    </FormDialog>
  )
}
