// The overview's query for records that need a person. Separate from its view, which loads in parallel.
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
    lastMessage { seq kind preview }
  }
`)
