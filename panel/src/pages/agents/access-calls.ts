// Finds assignable records by part of their name. No React here.
import type { Client } from '@urql/core'
import { graphql } from '../../api/graphql'
import type { Choice } from '../../ui/picker'

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
