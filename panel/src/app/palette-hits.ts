// Finds the records the user may see, by name, short code or id.
import { type LinkProps, useParams } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { useQuery } from 'urql'
import { graphql, type ResultOf } from '../api/graphql'
import { lastOrganization } from './last-organization'

const Search = graphql(`
  query ShellSearch($orgId: Id!, $q: String!) {
    search(orgId: $orgId, q: $q, limit: 20) { kind id name detail ref agentId }
  }
`)

type Found = NonNullable<ResultOf<typeof Search>['search']>[number]

export interface Hit extends Found {
  link: LinkProps
}

/** The page of each kind of record. Kinds without a page are not offered. */
export function linkOf({ kind, id }: Pick<Found, 'kind' | 'id'>, org: number): LinkProps | null {
  const params = { org, id } as never
  const list = (to: string, tab?: string) =>
    ({ to, params: { org }, search: { tab, peek: id } }) as unknown as LinkProps
  switch (kind) {
    case 'AGENT':
      return { to: '/o/$org/agents/$id', params }
    case 'APPROVAL':
      return { to: '/o/$org/approvals/$id', params }
    case 'CONVERSATION':
      return { to: '/o/$org/conversations/$id', params }
    case 'SERVER':
      return { to: '/o/$org/servers/$id', params }
    case 'CHANNEL':
      return list('/o/$org/channels')
    case 'CREDENTIAL':
      return list('/o/$org/credentials')
    case 'MCP_SERVER':
      return list('/o/$org/mcp-servers')
    case 'SKILL':
      return list('/o/$org/skills')
    case 'IMAGE':
      return list('/o/$org/agents', 'images')
    case 'MEMBER':
      return list('/o/$org/members')
    case 'INVITATION':
      return list('/o/$org/members', 'invitations')
    case 'SERVICE_TOKEN':
      return list('/o/$org/tokens')
    case 'CONTACT':
      return list('/o/$org/contacts')
    case 'ORGANIZATION':
      return { to: '/o/$org/settings', params: { org } as never }
    default:
      return null
  }
}

export function useHits(text: string): { hits: Hit[]; searching: boolean } {
  // The palette sits above the pages, so read the organization from the address.
  const org = useParams({ strict: false }).org ?? lastOrganization()
  const wanted = text.trim()
  const [q, setQ] = useState('')
  useEffect(() => {
    const timer = setTimeout(() => setQ(wanted), 90)
    return () => clearTimeout(timer)
  }, [wanted])
  const pause = !org || q === ''
  const [{ data, fetching }] = useQuery({ query: Search, variables: { orgId: org ?? 0, q }, pause })
  const found = wanted === '' || pause ? [] : (data?.search ?? [])
  const hits = found.flatMap((hit) => {
    const link = org && linkOf(hit, org)
    return link ? [{ ...hit, link }] : []
  })
  return { hits, searching: fetching || (wanted !== '' && wanted !== q) }
}
