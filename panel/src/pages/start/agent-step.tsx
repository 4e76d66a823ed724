// The second step: a running agent. The reference agent is the default: it needs no model, so nothing can be missing.
import { Link } from '@tanstack/react-router'
import { Play } from 'lucide-react'
import { useState } from 'react'
import { boundsOf, refusal } from '../../api/bounds'
import { placeErrors } from '../../api/form-errors'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useFormAct } from '../../api/use-form-act'
import { useAgentChoices } from '../../app/agent-choices'
import { useOrg } from '../../app/organization'
import { Gate } from '../../permissions/gate'
import { Button } from '../../ui/button'
import { Field } from '../../ui/field'
import { Form } from '../../ui/form'
import { TextInput } from '../../ui/inputs'
import { Notice } from '../../ui/notice'
import { type Choice, Picker } from '../../ui/picker'
import { Status } from '../../ui/status'
import type { StartAgent, StartServer } from './start-page'

const Create = graphql(`
  mutation CreateFirstAgent($orgId: Id!, $input: CreateAgentInput!) {
    createAgent(orgId: $orgId, input: $input) { id name status }
  }
`)
const Start = graphql(`
  mutation StartFirstAgent($orgId: Id!, $id: Id!) {
    startAgent(orgId: $orgId, id: $id) { id status statusReason statusDetail }
  }
`)

interface Props {
  server: StartServer | undefined
  agents: readonly StartAgent[]
}

export function AgentStep({ server, agents }: Props) {
  const known = agents[0]
  if (known) return <Known agent={known} />
  return server ? <NewAgent server={server} /> : null
}

/** An agent exists but is not running yet. */
function Known({ agent }: { agent: StartAgent }) {
  const { id: org } = useOrg()
  const start = useAct(Start)
  const down = agent.status === 'STOPPED' || agent.status === 'ERROR'
  return (
    <div className="space-y-3">
      <p className="flex flex-wrap items-center gap-2" role="status">
        <Link to="/o/$org/agents/$id" params={{ org, id: agent.id }} className="link font-medium">
          {agent.name}
        </Link>
        <Status of="agent" value={agent.status} />
        {agent.statusDetail && <span className="text-muted">{agent.statusDetail}</span>}
      </p>
      {down && (
        <Gate on={agent} may="agent.edit">
          <Button
            look="primary"
            icon={Play}
            busy={start.pending}
            onClick={() => void start({ orgId: org, id: agent.id })}
          >
            Start it
          </Button>
        </Gate>
      )}
    </div>
  )
}

function NewAgent({ server }: { server: StartServer }) {
  const { id: orgId } = useOrg()
  const [create, start] = [useFormAct(Create), useAct(Start)]
  const { images, defaultImage } = useAgentChoices()
  const [name, setName] = useState('')
  const [chosen, choose] = useState<Choice | null>(null)
  const [errors, setErrors] = useState<Record<string, string>>({})
  const [problem, setProblem] = useState<string | null>(null)
  const reference = images.find(({ detail }) => detail === 'muster/agent')
  const image = chosen ?? reference ?? images.find(({ id }) => id === defaultImage?.id) ?? null
  const submit = async () => {
    const wrong = refusal(name, boundsOf('CreateAgentInput.name'))
    if (wrong) return setErrors({ name: wrong })
    const input = { name, serverId: server.id, ...(image && { imageId: Number(image.id) }) }
    const { data, error } = await create({ orgId, input }, { quiet: true })
    if (data?.createAgent) return void start({ orgId, id: data.createAgent.id })
    const found = placeErrors(error, ['name', 'imageId'])
    setErrors(found.errors)
    setProblem(found.problem)
  }
  return (
    <Form className="space-y-3" noValidate onSubmit={() => !create.pending && void submit()}>
      <div className="grid gap-4 sm:grid-cols-2">
        <Field label="Name of the agent" error={errors.name}>
          <TextInput value={name} onValue={setName} placeholder="Marlow" autoComplete="off" />
        </Field>
        <Field label="Image" hint="The reference agent needs no model." error={errors.imageId}>
          <Picker value={image} choices={images} onValue={choose} placeholder="The default image" />
        </Field>
      </div>
      {problem && <Notice>{problem}</Notice>}
      <Gate may="agent.create">
        <Button look="primary" type="submit" busy={create.pending || start.pending}>
          Create and start it
        </Button>
      </Gate>
    </Form>
  )
}
