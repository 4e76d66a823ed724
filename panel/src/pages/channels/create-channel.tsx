// Creates a channel: an agent, a transport, and the transport's settings.
import { useState } from 'react'
import { boundsOf, refusal } from '../../api/bounds'
import { placeErrors } from '../../api/form-errors'
import { graphql, type VariablesOf } from '../../api/graphql'
import { useFormAct } from '../../api/use-form-act'
import { useFindAgents } from '../../app/assigned-agents'
import { useOrg } from '../../app/organization'
import { Field } from '../../ui/field'
import { FormDialog } from '../../ui/form-dialog'
import { Select, TextInput } from '../../ui/inputs'
import { Notice } from '../../ui/notice'
import { type Choice, Picker } from '../../ui/picker'
import { TransportChoice } from './transport-choice'
import { TransportField } from './transport-field'
import { DIRECTIONS, type Direction, groupsOf, SCOPES, type Transport } from './transports'
import { initialOf, inputOf, missing } from './values'

const Create = graphql(`
  mutation CreateChannel($orgId: Id!, $input: CreateChannelInput!) {
    createChannel(orgId: $orgId, input: $input) { id name }
  }
`)
type Input = VariablesOf<typeof Create>['input']

interface Props {
  onClose: () => void
  onCreated: (id: number) => void
}

export function CreateChannel({ onClose, onCreated }: Props) {
  const { id: orgId } = useOrg()
  const create = useFormAct(Create)
  const find = useFindAgents()
  const [agent, setAgent] = useState<Choice | null>(null)
  const [name, setName] = useState('')
  const [transport, setTransport] = useState<Transport>('TELEGRAM')
  const [direction, setDirection] = useState<Direction>('BIDIRECTIONAL')
  const [scope, setScope] = useState<'EXTERNAL' | 'INTERNAL'>('EXTERNAL')
  const [typed, setTyped] = useState<Record<string, unknown>>({})
  const [errors, setErrors] = useState<Record<string, string>>({})
  const [problem, setProblem] = useState<string | null>(null)
  const groups = groupsOf(transport, direction)
  const fields = groups.flatMap((group) => group.fields)
  const values = Object.fromEntries(
    fields.map((field) => [field.path, typed[field.path] ?? initialOf(field)]),
  )
  const submit = async () => {
    const wrong: Record<string, string | null> = {
      name: refusal(name, boundsOf('CreateChannelInput.name')),
      agentId: agent ? null : 'Choose an agent.',
    }
    for (const field of fields) {
      const { path, bounds, optional } = field
      const value = values[path]
      wrong[path] = missing(field, value)
      if (bounds && !(value === null && optional)) wrong[path] ??= refusal(value ?? '', boundsOf(bounds))
    }
    const said = Object.entries(wrong).filter((entry): entry is [string, string] => entry[1] !== null)
    setProblem(null)
    setErrors(Object.fromEntries(said))
    if (said.length > 0) return
    const input = {
      name,
      agentId: Number(agent?.id),
      transport,
      direction,
      scope,
      ...inputOf(values),
    } as Input
    const { data, error } = await create({ orgId, input }, { quiet: true, said: `Connected ${name}` })
    if (data?.createChannel) return onCreated(data.createChannel.id)
    const found = placeErrors(error, [
      'name',
      'agentId',
      'direction',
      'scope',
      ...fields.map(({ path }) => path),
    ])
    setErrors(found.errors)
    setProblem(found.problem)
  }
  return (
    <FormDialog
      title="New channel"
      width="lg"
      action="Connect the channel"
      busy={create.pending}
      onSubmit={submit}
      onClose={onClose}
      autoComplete="off"
    >
      <Field label="Agent" error={errors.agentId}>
        <Picker value={agent} onValue={setAgent} search={find} empty="No agent has this name." />
      </Field>
      <Field label="Name" error={errors.name}>
        <TextInput value={name} onValue={setName} autoComplete="off" placeholder="Support chat" />
      </Field>
      <TransportChoice
        value={transport}
        onValue={(next) => {
          setTransport(next)
          setTyped({})
          setErrors({})
        }}
      />
      <div className="grid gap-4 sm:grid-cols-2">
        <Field label="Direction" error={errors.direction}>
          <Select value={direction} onValue={setDirection} options={DIRECTIONS} />
        </Field>
        <Field label="Audience" doc="channels/README.md#connect-one" error={errors.scope}>
          <Select value={scope} onValue={setScope} options={SCOPES} />
        </Field>
      </div>
      {groups.map((group) => (
        <fieldset key={group.title} className="space-y-4 border-t border-line pt-4">
          <legend className="sr-only">{group.title}</legend>
          <div>
            <p aria-hidden className="font-semibold">
              {group.title}
            </p>
            {group.about && <p className="text-sm text-muted">{group.about}</p>}
          </div>
          {group.fields.map((field) => (
            <TransportField
              key={`${transport} ${field.path}`}
              field={field}
              value={values[field.path]}
              onValue={(value) => setTyped((before) => ({ ...before, [field.path]: value }))}
              error={errors[field.path]}
            />
          ))}
        </fieldset>
      ))}
      {problem && <Notice>{problem}</Notice>}
    </FormDialog>
  )
}
