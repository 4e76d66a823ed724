// The calls behind what an agent may touch. No React here.
import type { Client } from '@urql/core'
import { wordsOf } from '../../api/errors'
import { graphql } from '../../api/graphql'
import type { Choice } from '../../ui/picker'
import { sayProblem } from '../../ui/toast-store'
import type { Kind } from './access'

export const SetCredential = graphql(`
  mutation GiveCredential($orgId: Id!, $id: Id!, $agentIds: [Id!]!) {
    setCredentialAgents(orgId: $orgId, id: $id, input: { agentIds: $agentIds }) { id assignmentCount agents { id name } }
  }
`)
export const SetMcp = graphql(`
  mutation GiveMcpServer($orgId: Id!, $id: Id!, $agentIds: [Id!]!) {
    setMcpServerAgents(orgId: $orgId, id: $id, input: { agentIds: $agentIds }) { id assignmentCount agents { id name } }
  }
`)
export const SetSkill = graphql(`
  mutation GiveSkill($orgId: Id!, $id: Id!, $agentIds: [Id!]!) {
    setSkillAgents(orgId: $orgId, id: $id, input: { agentIds: $agentIds }) { id assignmentCount agents { id name } }
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
const FindCredentials = graphql(`
  query FindCredentials($orgId: Id!, $search: String) {
    credentials(orgId: $orgId, page: 1, limit: 20, search: $search, sort: NAME) { data { id name kind } }
  }
`)
const FindMcpServers = graphql(`
  query FindMcpServers($orgId: Id!, $search: String) {
    mcpServers(orgId: $orgId, page: 1, limit: 20, search: $search, sort: NAME) { data { id name } }
  }
`)
const FindSkills = graphql(`
  query FindSkills($orgId: Id!, $search: String) {
    skills(orgId: $orgId, page: 1, limit: 20, search: $search, sort: NAME) { data { id name } }
  }
`)

const AGENTS = { credential: CredentialAgents, mcp: McpAgents, skill: SkillAgents }

/** The agents that have a record now, as the service says. Null: it refused, and a toast says why. */
export async function readAgents(
  client: Client,
  kind: Kind,
  orgId: number,
  id: number,
): Promise<number[] | null> {
  const { data, error } = await client
    .query(AGENTS[kind], { orgId, id }, { requestPolicy: 'network-only' })
    .toPromise()
  if (!data?.it) {
    sayProblem(wordsOf(error))
    return null
  }
  return data.it.agents.map((agent) => agent.id)
}

const words = (text: string) => text.trim() || null

export async function findCredentials(client: Client, orgId: number, text: string): Promise<Choice[]> {
  const { data } = await client.query(FindCredentials, { orgId, search: words(text) }).toPromise()
  return (data?.credentials?.data ?? []).map(({ id, name, kind }) => ({ id, name, detail: kind }))
}

export async function findMcpServers(client: Client, orgId: number, text: string): Promise<Choice[]> {
  const { data } = await client.query(FindMcpServers, { orgId, search: words(text) }).toPromise()
  return [...(data?.mcpServers?.data ?? [])]
}

export async function findSkills(client: Client, orgId: number, text: string): Promise<Choice[]> {
  const { data } = await client.query(FindSkills, { orgId, search: words(text) }).toPromise()
  return [...(data?.skills?.data ?? [])]
}
