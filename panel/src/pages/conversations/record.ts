// The conversation fields for these pages.
import { graphql, type ResultOf } from '../../api/graphql'
import { conversationTitle } from '../../app/conversation-title'

export const ConversationRow = graphql(`
  fragment ConversationRow on Conversation @_unmask {
    id
    ref
    title
    status
    contactName
    channelName
    transport
    lastActivityAt
    lastSeq
    unread
    readSeq
    pendingApprovals
    takenOverBy
    takenOverByName
    agent { id name avatarUrl }
    lastMessage { seq role kind preview createdAt }
    openTurns { id state createdAt startedAt }
  }
`)

export const ConversationFields = graphql(
  `
    fragment ConversationFields on Conversation @_unmask {
      ...ConversationRow
      agentId
      agentDetails { id status statusReason viewerCan restart { nextAt } }
      channelId
      channel { id direction isActive inactiveReason }
      contactId
      contextTokens
      model
      createdAt
      messageCount
      takenOverAt
      watching
      revision
      viewerCan
      archivedAt
    }
  `,
  [ConversationRow],
)

export type ConversationRowRecord = ResultOf<typeof ConversationRow>
export type ConversationRecord = ResultOf<typeof ConversationFields>

export const ConversationQuery = graphql(
  `
    query ConversationShown($orgId: Id!, $id: Id!) {
      conversation(orgId: $orgId, id: $id) { ...ConversationFields }
    }
  `,
  [ConversationFields],
)

/** The title of a conversation, with a fallback if it has no subject. */
export function nameOf(
  conversation: Pick<ConversationRowRecord, 'title' | 'contactName' | 'agent' | 'ref'>,
): string {
  return conversationTitle(conversation)
}
