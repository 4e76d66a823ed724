// The first step: a machine joins. The command is shown once; a lost one can be replaced.
import { useState } from 'react'
import { boundsOf, refusal } from '../../api/bounds'
import { wordsOf } from '../../api/errors'
import { fieldErrors } from '../../api/form-errors'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { joinLine, runLine, serviceLine } from '../../app/join-line'
import { useOrg } from '../../app/organization'
import { ProgramHint } from '../../app/program'
import { JoinCheck } from '../../app/server-joined'
import { Gate } from '../../permissions/gate'
import { Button } from '../../ui/button'
import { CodeBlock } from '../../ui/code'
import { Field } from '../../ui/field'
import { Form } from '../../ui/form'
import { TextInput } from '../../ui/inputs'
import type { StartServer } from './start-page'

const Create = graphql(`
  mutation CreateFirstServer($orgId: Id!, $name: String!) {
    createServer(orgId: $orgId, input: { name: $name }) { id name provisioningToken }
  }
`)
const Renew = graphql(`
  mutation RenewFirstToken($orgId: Id!, $id: Id!) {
    regenerateProvisioningToken(orgId: $orgId, id: $id) { id name provisioningToken }
  }
`)

export function ServerStep({ servers }: { servers: readonly StartServer[] }) {
  const { id: orgId } = useOrg()
  const [fresh, setFresh] = useState<{ id: number; token: string } | null>(null)
  const renew = useAct(Renew)
  const server = servers.find(({ id }) => id === fresh?.id) ?? servers[0]
  if (!server && !fresh) return <NewServer onCreated={setFresh} />
  const id = fresh?.id ?? server?.id ?? 0
  const name = server?.name ?? 'The server'
  if (server?.status === 'OFFLINE') {
    return (
      <>
        <p className="mb-2 text-muted">
          {name} has joined before and is away. Start its host again on the machine:
        </p>
        <CodeBlock text={runLine(id)} label="the line to run" />
        <div className="mt-3">
          <JoinCheck name={name} joined={false} hostname={null} />
        </div>
      </>
    )
  }
  if (!fresh) {
    return (
      <>
        <p className="mb-3 text-muted">
          {name} waits for its machine. Run the line that was shown when it was made, or get a new one.
        </p>
        <Gate may="server.edit">
          <Button
            look="primary"
            busy={renew.pending}
            onClick={async () => {
              const { data } = await renew({ orgId, id })
              const made = data?.regenerateProvisioningToken
              if (made) setFresh({ id: made.id, token: made.provisioningToken ?? '' })
            }}
          >
            Show a new line
          </Button>
        </Gate>
      </>
    )
  }
  return (
    <>
      <p className="mb-2">
        Run this on the machine that agents are to run on; the one that Muster runs on will do. It asks for
        the token below. Leave it running.
      </p>
      <CodeBlock text={joinLine(id)} label="the line to run" />
      <p className="mt-3 mb-1">The token:</p>
      <CodeBlock text={fresh.token} label="the token" />
      <p className="mt-1.5 mb-3 text-xs text-muted">
        It is shown once and works once. The machine calls Muster; no port has to be opened.
      </p>
      <details className="mb-3 rounded-control border border-line px-3 py-2 text-sm" data-outlined>
        <summary className="rounded-sm font-medium">Is this more than a trial?</summary>
        <div className="mt-2 space-y-2 text-muted">
          <p>
            Run this line instead, as root. It gives the host a user of its own, and starts it with the
            machine:
          </p>
          <CodeBlock text={serviceLine(id)} label="the line for a service" />
        </div>
      </details>
      <div className="mb-3">
        <ProgramHint />
      </div>
      <JoinCheck name={name} joined={false} hostname={null} />
    </>
  )
}

function NewServer({ onCreated }: { onCreated: (server: { id: number; token: string }) => void }) {
  const { id: orgId } = useOrg()
  const create = useAct(Create)
  const [name, setName] = useState('')
  const [problem, setProblem] = useState<string | null>(null)
  const submit = async () => {
    const wrong = refusal(name, boundsOf('CreateServerInput.name'))
    if (wrong) return setProblem(wrong)
    const { data, error } = await create({ orgId, name }, { quiet: true })
    const made = data?.createServer
    if (made) onCreated({ id: made.id, token: made.provisioningToken ?? '' })
    else setProblem(fieldErrors(error).name ?? wordsOf(error))
  }
  return (
    <Form noValidate onSubmit={() => !create.pending && void submit()}>
      <p className="mb-3 text-muted">Agents run on machines of yours. What should the first one be called?</p>
      <Field label="Name of the server" error={problem}>
        <TextInput value={name} onValue={setName} placeholder="desk" autoComplete="off" className="sm:w-72" />
      </Field>
      <div className="mt-3">
        <Gate may="server.create">
          <Button look="primary" type="submit" busy={create.pending}>
            Show the line to run
          </Button>
        </Gate>
      </div>
    </Form>
  )
}
