// Finds members by part of their name or address, for pickers.
import { useCallback } from 'react'
import { useClient } from 'urql'
import { graphql } from '../api/graphql'
import type { Choice } from '../ui/picker'
import { useOrg } from './organization'

const FindMembers = graphql(`
  query FindMembers($orgId: Id!, $search: String) {
    members(orgId: $orgId, page: 1, limit: 20, search: $search, sort: NAME) { data { userId organizationId name email } }
  }
`)

export function useFindMembers(): (text: string) => Promise<Choice[]> {
  const client = useClient()
  const { id: orgId } = useOrg()
  return useCallback(
    async (text) => {
      const { data } = await client.query(FindMembers, { orgId, search: text.trim() || null }).toPromise()
      return (data?.members?.data ?? []).map(({ userId, name, email }) => ({
        id: userId,
        name,
        detail: email,
      }))
    },
    [client, orgId],
  )
}
