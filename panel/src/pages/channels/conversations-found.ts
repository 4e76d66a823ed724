// Finds conversations by their titles, as choices.
import { useCallback } from 'react'
import { useClient } from 'urql'
import { graphql } from '../../api/graphql'
import { conversationTitle } from '../../app/conversation-title'
import { useOrg } from '../../app/organization'
import type { Choice } from '../../ui/picker'

const ConversationsFound = graphql(`
  query ChannelConversationsFound($orgId: Id!, $search: String, $channelId: Id) {
    conversationFeed(
      orgId: $orgId, search: $search, channelId: $channelId, status: [OPEN, PENDING, RESOLVED], limit: 20
    ) {
      data { id ref title contactName agent { id name } }
    }
  }
`)

export const choiceOf = (found: {
  id: number
  ref: string
  title: string | null
  contactName: string | null
}) => ({
  id: found.id,
  name: conversationTitle(found),
  detail: found.ref,
})

/** Those of a channel, or all of the organization. */
export function useFindConversations(channelId: number | null): (text: string) => Promise<Choice[]> {
  const client = useClient()
  const { id: orgId } = useOrg()
  return useCallback(
    async (text) => {
      const { data } = await client
        .query(ConversationsFound, { orgId, search: text.trim() || null, channelId })
        .toPromise()
      return (data?.conversationFeed?.data ?? []).map(choiceOf)
    },
    [client, orgId, channelId],
  )
}
