// Tests the connection to an MCP server, as one of its agents, and shows the result.
import { useState } from 'react'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useFindAgents } from '../../app/assigned-agents'
import { useGive } from '../../app/assigned-agents-calls'
import { useOrg } from '../../app/organization'
import type { Governed } from '../../permissions/can'
import { Gate } from '../../permissions/gate'
import { Button } from '../../ui/button'
import { Field } from '../../ui/field'
import { Select } from '../../ui/inputs'
import { Notice } from '../../ui/notice'
import { useNow } from '../../ui/now'
import { Panel } from '../../ui/panel'
import { type Choice, Picker } from '../../ui/picker'
import { Time } from '../../ui/time'
import { sayProblem } from '../../ui/toast-store'
import { Visible } from '../../ui/visible'
import { ANSWER_SECONDS, isOverdue } from './overdue'

const Test = graphql(`
  mutation TestMcpServer($orgId: Id!, $id: Id!, $agentId: Id!) {
    testMcpServer(orgId: $orgId, id: $id, agentId: $agentId) {
      id states { status error stderr tools reportedAt testAskedAt testedAt testError protocol program agent { id name } }
    }
  }
`)

interface State {
  testAskedAt: string | null
  testedAt: string | null
  testError: string | null
  protocol: string | null
  program: string | null
  agent: { id: number } | null
}

interface Server extends Governed {
  id: number
  agents: readonly { id: number; name: string }[]
  states: readonly State[]
}

export function ConnectionTest({ server }: { server: Server }) {
  const { id: orgId } = useOrg()
  const test = useAct(Test)
  const [find, give] = [useFindAgents(), useGive()]
  const [chosen, choose] = useState<number | null>(null)
  const agent = server.agents.find(({ id }) => id === chosen) ?? server.agents[0]
  const testAs = (agentId: number) => void test({ orgId, id: server.id, agentId })
  const assign = async ({ id }: Choice) => {
    const problem = await give('mcp', server.id, Number(id))
    if (problem) sayProblem(problem)
    else testAs(Number(id))
  }
  const state = server.states.find((state) => state.agent?.id === agent?.id)
  return (
    <Panel
      title="Connection"
      about="The host of a running agent starts a session and lists the tools, under the agent’s rules."
    >
      {!agent ? (
        <Gate on={server} may="mcp.edit">
          <Field
            label="Assign to an agent and test"
            hint="No agent has this MCP server yet. The test runs on the host of an agent that is up, under that agent’s rules."
          >
            <Picker
              value={null}
              search={find}
              placeholder="Choose an agent…"
              empty="No agent has this name."
              disabled={!server.viewerCan.includes('mcp.edit')}
              onValue={(agent) => agent && void assign(agent)}
            />
          </Field>
        </Gate>
      ) : (
        <Gate on={server} may="mcp.edit">
          <div className="mb-2 flex flex-wrap items-end gap-2">
            {server.agents.length > 1 && (
              <Field label="As" className="w-56">
                <Select
                  value={String(agent.id)}
                  onValue={(id) => choose(Number(id))}
                  options={server.agents.map(({ id, name }) => ({ value: String(id), label: name }))}
                />
              </Field>
            )}
            <Button busy={test.pending} onClick={() => testAs(agent.id)}>
              Test the connection
            </Button>
          </div>
        </Gate>
      )}
      {state?.testAskedAt && <Result state={state} askedAt={state.testAskedAt} />}
    </Panel>
  )
}

function Result({ state, askedAt }: { state: State; askedAt: string }) {
  if (!state.testedAt) return <Unanswered askedAt={askedAt} />
  if (state.testError) {
    return (
      <Notice>
        <Visible text={state.testError} />
      </Notice>
    )
  }
  const words = [state.program, state.protocol && `protocol ${state.protocol}`].filter(Boolean).join(', ')
  return (
    <p className="text-sm" role="status">
      It works{words && ': '}
      <Visible text={words} /> <Time at={state.testedAt} />
    </p>
  )
}

/** A host that is away never answers, because the request expires. */
function Unanswered({ askedAt }: { askedAt: string }) {
  const isLate = isOverdue(askedAt, useNow())
  return (
    <p className="text-sm text-muted" role="status">
      The host was asked <Time at={askedAt} />
      {isLate ? `. No answer within ${ANSWER_SECONDS} seconds.` : ', and has not answered yet.'}
    </p>
  )
}
