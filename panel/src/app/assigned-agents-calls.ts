// Assigns records to agents or members. The service takes the whole set, so each change first reads the current one,
// and changes run one after another: a change must not restore a concurrent removal.
import { useClient } from 'urql'
import { wordsOf } from '../api/errors'
import { graphql } from '../api/graphql'
import { readFresh } from '../api/requests'
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

/** When a changed credential or assignment reaches a running agent. */
export const CREDENTIAL_APPLIES =
  'Servers use each change at once. An agent that reads the values gets it at its next start.'

export type Kind = keyof typeof AGENTS

interface SetChange {
  /** The agent or member to add or remove. */
  id: number
  has: boolean
  said: string
  /** Reads the current ids from the service. Null: it refused, and a toast explains why. */
  read: () => Promise<number[] | null>
  send: (ids: number[], options: ActOptions) => Promise<unknown>
}

const inTurn = queue()

/** Adds or removes one id, and offers to undo only that. */
export function changeSet({ id, has, said, read, send }: SetChange): Promise<void> {
  const change = (gives: boolean, options: ActOptions) =>
    inTurn(async () => {
      const ids = await read()
      if (!ids) return
      const others = ids.filter((other) => other !== id)
      await send(gives ? [...others, id] : others, options)
    })
  return change(has, { said, undo: () => change(!has, { said: 'Undone' }) })
}

interface Assignment {
  /** The credential, MCP server or skill, and its name in a sentence: "this skill". */
  record: { id: number; name: string }
  agent: { id: number; name: string }
  has: boolean
}

const useActs = () => ({ credential: useAct(SetCredential), mcp: useAct(SetMcp), skill: useAct(SetSkill) })

/** Returns a function that assigns a record to a new agent, and says why if that failed. */
export function useGive(): (kind: Kind, record: number, agent: number) => Promise<string | null> {
  const { id: orgId } = useOrg()
  const client = useClient()
  const acts = useActs()
  return (kind, record, agent) =>
    inTurn(async () => {
      const { data, error } = await readFresh(client, AGENTS[kind], { orgId, id: record })
      if (!data?.it) return wordsOf(error)
      const agentIds = [...data.it.agents.map(({ id }) => id), agent]
      const given = await acts[kind]({ orgId, id: record, agentIds }, { quiet: true })
      return given.error ? wordsOf(given.error) : null
    })
}

/** Returns a function that assigns a record to an agent or unassigns it. */
export function useAssign(kind: Kind): (assignment: Assignment) => Promise<void> {
  const { id: orgId } = useOrg()
  const client = useClient()
  const acts = useActs()
  return ({ record, agent, has }) =>
    changeSet({
      id: agent.id,
      has,
      said: `${agent.name} ${has ? 'has' : 'no longer has'} ${record.name}`,
      read: async () => {
        const { data, error } = await readFresh(client, AGENTS[kind], { orgId, id: record.id })
        if (!data?.it) sayProblem(wordsOf(error))
        return data?.it?.agents.map(({ id }) => id) ?? null
      },
      send: (agentIds, options) => acts[kind]({ orgId, id: record.id, agentIds }, options),
    })
}
