// What the overview reads of the records that need a person. Apart from its lines, which come while it is read.
import { graphql } from '../../api/graphql'

export const AttentionApproval = graphql(`
  fragment AttentionApproval on Approval {
    id title severity risk expiresAt createdAt assigneeName
    agent { id name avatarUrl }
  }
`)
export const AttentionAgent = graphql(`
  fragment AttentionAgent on Agent {
    id name avatarUrl status statusReason lastActionAt
  }
`)
export const AttentionConversation = graphql(`
  fragment AttentionConversation on Conversation {
    id ref title unread lastActivityAt contactName
    agent { id name avatarUrl }
    lastMessage { seq preview }
  }
`)
