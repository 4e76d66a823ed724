// Chooses the conversation that a channel notifies of incoming messages.
import { type AriaAttributes, useCallback, useState } from 'react'
import { useClient } from 'urql'
import { graphql } from '../../api/graphql'
import { conversationTitle } from '../../app/conversation-title'
import { useOrg } from '../../app/organization'
import { type Choice, Picker } from '../../ui/picker'
import type { Channel } from './channel'

const ConversationsFound = graphql(`
  query NotifiedConversationsFound($orgId: Id!, $search: String) {
    conversationFeed(orgId: $orgId, search: $search, status: [OPEN, PENDING, RESOLVED], limit: 20) {
      data { id ref title contactName agent { id name } }
    }
  }
`)

const choiceOf = (found: { id: number; ref: string; title: string | null; contactName: string | null }) => ({
  id: found.id,
  name: conversationTitle(found),
  detail: found.ref,
})

interface Props extends Pick<AriaAttributes, 'aria-describedby' | 'aria-invalid'> {
  id?: string
  stored: Channel['notifyConversation']
  value: number | null
  onValue: (id: number | null) => void
}

export function NotifiedPicker({ stored, value, onValue, ...field }: Props) {
  const client = useClient()
  const { id: orgId } = useOrg()
  const [chosen, choose] = useState<Choice | null>(null)
  const search = useCallback(
    async (text: string): Promise<Choice[]> => {
      const { data } = await client
        .query(ConversationsFound, { orgId, search: text.trim() || null })
        .toPromise()
      return (data?.conversationFeed?.data ?? []).map(choiceOf)
    },
    [client, orgId],
  )
  const known = [chosen, stored && choiceOf(stored)].find((choice) => choice?.id === value)
  return (
    <Picker
      {...field}
      value={value === null ? null : (known ?? { id: value, name: `Conversation ${value}` })}
      search={search}
      placeholder="No one"
      empty="No conversation has this name."
      clearable
      onValue={(choice) => {
        choose(choice)
        onValue(choice ? Number(choice.id) : null)
      }}
    />
  )
}
