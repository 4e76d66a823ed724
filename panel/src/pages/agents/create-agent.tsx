// Creates an agent: a name, a server, an image. Everything else is set on its page, or comes from the agent that it
// duplicates.
import { Link } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { refusalsOf } from '../../api/bounds'
import { placeErrors } from '../../api/form-errors'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useFormAct } from '../../api/use-form-act'
import { useAgentChoices } from '../../app/agent-choices'
import { useModels } from '../../app/models'
import { useOrg } from '../../app/organization'
import { Checkbox } from '../../ui/choices'
import { Field } from '../../ui/field'
import { FormDialog } from '../../ui/form-dialog'
import { TextArea, TextInput } from '../../ui/inputs'
import { Notice } from '../../ui/notice'
import { type Choice, Picker } from '../../ui/picker'
import { SuggestedInput } from '../../ui/suggested-input'

const Create = graphql(`
  mutation CreateAgent($orgId: Id!, $input: CreateAgentInput!) {
    createAgent(orgId: $orgId, input: $input) { id name status }
  }
`)
const Start = graphql(`
  mutation StartNewAgent($orgId: Id!, $id: Id!) {
    startAgent(orgId: $orgId, id: $id) { id status statusReason statusDetail }
  }
`)

const NOTHING = { name: '', role: '', description: '', instructions: '', modelOverride: '' }

interface Props {
  title?: string
  /** The values to begin with. */
  first?: { text: typeof NOTHING; server: Choice | null; image: Choice | null }
  /** Completes the new agent, and returns whether it lacks nothing: otherwise it does not start. */
  complete?: (made: { id: number; name: string }) => Promise<boolean>
  children?: ReactNode
  onClose: () => void
  onCreated: (id: number) => void
}

export function CreateAgent({ title = 'New agent', first, complete, children, onClose, onCreated }: Props) {
  const org = useOrg()
  const create = useFormAct(Create)
  const begin = useAct(Start)
  const { servers, images, defaultImage, loading } = useAgentChoices()
  const [text, setText] = useState(first?.text ?? NOTHING)
  const [chosenServer, chooseServer] = useState(first?.server ?? null)
  const [chosenImage, chooseImage] = useState(first?.image ?? null)
  const models = useModels()
  const [start, setStart] = useState(true)
  const [completing, setCompleting] = useState(false)
  const [errors, setErrors] = useState<Record<string, string>>({})
  const [problem, setProblem] = useState<string | null>(null)
  const server = chosenServer ?? (servers.length === 1 ? (servers[0] ?? null) : null)
  const image = chosenImage ?? images.find(({ id }) => id === defaultImage?.id) ?? null
  const set = (change: Partial<typeof text>) => setText({ ...text, ...change })

  const submit = async () => {
    const optional = {
      ...(text.role && { role: text.role }),
      ...(text.description && { description: text.description }),
      ...(text.instructions && { instructions: text.instructions }),
      ...(text.modelOverride && { modelOverride: text.modelOverride }),
    }
    const wrong = refusalsOf('CreateAgentInput', { name: text.name, ...optional })
    setErrors(server ? wrong : { ...wrong, serverId: 'Choose a server.' })
    if (Object.keys(wrong).length > 0 || !server) return
    const input = {
      name: text.name,
      serverId: Number(server.id),
      ...(image && { imageId: Number(image.id) }),
      ...optional,
    }
    const { data, error } = await create(
      { orgId: org.id, input },
      { quiet: true, said: `Created ${text.name}` },
    )
    const made = data?.createAgent
    if (made) {
      setCompleting(true)
      const isComplete = (await complete?.(made)) ?? true
      if (start && isComplete) await begin({ orgId: org.id, id: made.id })
      return onCreated(made.id)
    }
    const found = placeErrors(error, [...Object.keys(NOTHING), 'serverId', 'imageId'])
    setErrors(found.errors)
    setProblem(found.problem)
  }
  return (
    <FormDialog
      title={title}
      width="md"
      action="Create the agent"
      busy={create.pending || completing}
      onSubmit={submit}
      onClose={onClose}
    >
      <div className="grid gap-4 sm:grid-cols-2">
        <Field label="Name" hint="People see it beside each answer." error={errors.name}>
          <TextInput value={text.name} onValue={(name) => set({ name })} autoComplete="off" />
        </Field>
        <Field label="Role" optional hint="Customer support, for example." error={errors.role}>
          <TextInput value={text.role} onValue={(role) => set({ role })} autoComplete="off" />
        </Field>
      </div>
      <Field label="Description" optional error={errors.description}>
        <TextArea rows={2} value={text.description} onValue={(description) => set({ description })} />
      </Field>
      <Field
        label="Instructions"
        doc="agents.md#instructions"
        optional
        hint="The agent gets them at the beginning of each conversation."
        error={errors.instructions}
      >
        <TextArea rows={3} value={text.instructions} onValue={(instructions) => set({ instructions })} />
      </Field>
      {!loading && servers.length === 0 ? (
        <Notice tone="warn">
          An agent runs on one of your servers, and you have none yet.{' '}
          <Link to="/o/$org/start" params={{ org: org.id }} className="font-medium underline">
            Connect one first
          </Link>
          .
        </Notice>
      ) : (
        <Field label="Server" hint="The machine that the agent runs on." error={errors.serverId}>
          <Picker value={server} choices={servers} onValue={chooseServer} placeholder="Choose a server…" />
        </Field>
      )}
      <Field
        label="Image"
        doc="hosts.md#programs"
        hint="The agent’s program. The reference agent needs no model: good for a first try."
        error={errors.imageId}
      >
        <Picker value={image} choices={images} onValue={chooseImage} placeholder="The default image" />
      </Field>
      <Field label="Model" optional hint="Instead of the image’s own." error={errors.modelOverride}>
        <SuggestedInput
          suggestions={models}
          value={text.modelOverride}
          onValue={(modelOverride) => set({ modelOverride })}
        />
      </Field>
      {children}
      <Checkbox checked={start} onChecked={setStart} label="Start the agent at once" />
      {problem && <Notice>{problem}</Notice>}
    </FormDialog>
  )
}
