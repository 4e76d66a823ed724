// Who has a record: its agents, its people. The service takes the whole set, so it is read right before each change, and one
// change waits for the one before: what was taken away meanwhile is not given back.
import { useClient } from 'urql'
import { wordsOf } from '../api/errors'
import { graphql } from '../api/graphql'
import { readAnew } from '../api/requests'
import { type ActOptions, queue, useAct } from '../api/use-act'
import { sayProblem } from '../ui/toast-store'
import { useOrg } from './organization'

const SetCredential = graphql(`
  mutation SetCredentialAgents($orgId: Id!, $id: Id!, $agentIds: [Id!]!) {
    setCredentialAgents(orgId: $orgId, id: $id, input: { agentIds: $agentIds }) {
      id revision assignmentCount agents { id name avatarUrl }
    }
  }
`)
const SetMcp = graphql(`
  mutation SetMcpServerAgents($orgId: Id!, $id: Id!, $agentIds: [Id!]!) {
    setMcpServerAgents(orgId: $orgId, id: $id, input: { agentIds: $agentIds }) {
      id revision assignmentCount agents { id name avatarUrl }
    }
  }
`)
const SetSkill = graphql(`
  mutation SetSkillAgents($orgId: Id!, $id: Id!, $agentIds: [Id!]!) {
    setSkillAgents(orgId: $orgId, id: $id, input: { agentIds: $agentIds }) {
      id revision assignmentCount agents { id name avatarUrl }
    }
  }
`)
const CredentialAgents = graphql(`
  query AgentsOfCredential($orgId: Id!, $id: Id!) { it: credential(orgId: $orgId, id: $id) { id agents { id } } }
`)
const McpAgents = graphql(`
  query AgentsOfMcpServer($orgId: Id!, $id: Id!) { it: mcpServer(orgId: $orgId, id: $id) { id agents { id } } }
`)
const SkillAgents = graphql(`
  query AgentsOfSkill($orgId: Id!, $id: Id!) { it: skill(orgId: $orgId, id: $id) { id agents { id } } }
`)

const AGENTS = { credential: CredentialAgents, mcp: McpAgents, skill: SkillAgents }

export type Kind = keyof typeof AGENTS

interface SetChange {
  /** Who gets it, or loses it. */
  id: number
  has: boolean
  said: string
  /** Those who have it now, as the service says. Null: it refused, and a toast says why. */
  read: () => Promise<number[] | null>
  send: (ids: number[], options: ActOptions) => Promise<unknown>
}

const inTurn = queue()

/** Gives a record to one, or takes it away, and offers to undo that alone. */
export function changeSet({ id, has, said, read, send }: SetChange): Promise<void> {
  const change = (gives: boolean, options: ActOptions) =>
    inTurn(async () => {
      const ids = await read()
      if (!ids) return
      const others = ids.filter((other) => other !== id)
      await send(gives ? [...others, id] : others, options)
    })
  return change(has, { said, undo: () => change(!has, { said: 'Taken back' }) })
}

interface Assignment {
  /** The credential, the MCP server or the skill, and what it is called: "this skill". */
  record: { id: number; name: string }
  agent: { id: number; name: string }
  has: boolean
}

/** A function that gives a record to an agent, or takes it away. */
export function useAssign(kind: Kind): (assignment: Assignment) => Promise<void> {
  const { id: orgId } = useOrg()
  const client = useClient()
  const acts = { credential: useAct(SetCredential), mcp: useAct(SetMcp), skill: useAct(SetSkill) }
  return ({ record, agent, has }) =>
    changeSet({
      id: agent.id,
      has,
      said: `${agent.name} ${has ? 'has' : 'no longer has'} ${record.name}`,
      read: async () => {
        const { data, error } = await readAnew(client, AGENTS[kind], { orgId, id: record.id })
        if (!data?.it) sayProblem(wordsOf(error))
        return data?.it?.agents.map(({ id }) => id) ?? null
      },
      send: (agentIds, options) => acts[kind]({ orgId, id: record.id, agentIds }, options),
    })
}
