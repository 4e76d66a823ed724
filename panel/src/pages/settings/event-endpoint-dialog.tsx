// Creates an event endpoint, or edits one.
import { useState } from 'react'
import { boundsOf, refusal } from '../../api/bounds'
import { placeErrors } from '../../api/form-errors'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useOrg } from '../../app/organization'
import { Checkbox } from '../../ui/choices'
import { Field } from '../../ui/field'
import { FormDialog } from '../../ui/form-dialog'
import { TextInput } from '../../ui/inputs'
import { Notice } from '../../ui/notice'
import type { EventEndpoint } from './event-endpoints'
import { EVENT_TYPES } from './event-types'

const Create = graphql(`
  mutation CreateEventEndpoint($orgId: Id!, $input: CreateEventEndpointInput!) {
    createEventEndpoint(orgId: $orgId, input: $input) { id name secret }
  }
`)
export const UpdateEventEndpoint = graphql(`
  mutation UpdateEventEndpoint($orgId: Id!, $id: Id!, $ifRevision: Int, $input: UpdateEventEndpointInput!) {
    updateEventEndpoint(orgId: $orgId, id: $id, ifRevision: $ifRevision, input: $input) {
      id name url types isActive inactiveReason inactiveDetail failingSince revision
    }
  }
`)

interface Props {
  /** The endpoint to edit. None: a new one. */
  endpoint: EventEndpoint | null
  onClose: () => void
  onIssued: (name: string, secret: string) => void
}

export function EventEndpointDialog({ endpoint, onClose, onIssued }: Props) {
  const { id: orgId } = useOrg()
  const [create, update] = [useAct(Create), useAct(UpdateEventEndpoint)]
  const [name, setName] = useState(endpoint?.name ?? '')
  const [url, setUrl] = useState(endpoint?.url ?? '')
  const [types, setTypes] = useState<readonly string[]>(endpoint?.types ?? [])
  const [errors, setErrors] = useState<Record<string, string>>({})
  const [problem, setProblem] = useState<string | null>(null)
  const save = async () => {
    const input = { name, url, types: [...types] }
    if (endpoint) {
      const { id, revision: ifRevision } = endpoint
      const { error } = await update({ orgId, id, ifRevision, input }, { quiet: true, said: 'Saved' })
      return error
    }
    const { data, error } = await create({ orgId, input }, { quiet: true })
    const made = data?.createEventEndpoint
    if (made?.secret) onIssued(made.name, made.secret)
    return error
  }
  const submit = async () => {
    const found = {
      name: refusal(name, boundsOf('CreateEventEndpointInput.name')),
      url: refusal(url, boundsOf('CreateEventEndpointInput.url')),
      types: types.length === 0 ? 'Choose at least one.' : null,
    }
    const wrong = Object.entries(found).flatMap(([field, text]) => (text ? [[field, text]] : []))
    setErrors(Object.fromEntries(wrong))
    if (wrong.length > 0) return
    const error = await save()
    if (!error) return onClose()
    const placed = placeErrors(error, ['name', 'url', 'types'])
    setErrors(placed.errors)
    setProblem(placed.problem)
  }
  return (
    <FormDialog
      title={endpoint ? `Edit ${endpoint.name}` : 'New event endpoint'}
      action={endpoint ? 'Save' : 'Create the endpoint'}
      may="organization.edit"
      busy={create.pending || update.pending}
      onSubmit={submit}
      onClose={onClose}
      autoComplete="off"
    >
      <Field label="Name" hint="The endpoint’s purpose." error={errors.name}>
        <TextInput value={name} onValue={setName} autoComplete="off" />
      </Field>
      <Field
        label="Address"
        doc="events.md#what-you-can-rely-on"
        hint="Events are posted to this address, signed."
        error={errors.url}
      >
        <TextInput type="url" value={url} onValue={setUrl} autoComplete="off" spellCheck={false} />
      </Field>
      <fieldset className="min-w-0 space-y-2">
        <legend className="mb-1.5 text-sm font-medium">Events</legend>
        {EVENT_TYPES.map(({ type, label }) => (
          <Checkbox
            key={type}
            label={label}
            hint={type}
            checked={types.includes(type)}
            onChecked={(on) => setTypes(on ? [...types, type] : types.filter((known) => known !== type))}
          />
        ))}
        {errors.types && <Notice>{errors.types}</Notice>}
      </fieldset>
      {problem && <Notice>{problem}</Notice>}
    </FormDialog>
  )
}
