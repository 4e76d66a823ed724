// The approval fields for the inbox, the approval's page and conversations.
import { graphql, type ResultOf } from '../../api/graphql'

export const ApprovalFields = graphql(`
  fragment ApprovalFields on Approval @_unmask {
    id
    kind
    status
    outcome
    title
    body
    severity
    risk
    category
    createdAt
    expiresAt
    resolvedAt
    deliveredAt
    comment
    decidedVia
    withdrawnBy
    withdrawnWith
    conversationId
    conversationRef
    messageSeq
    turnId
    serverId
    channelId
    assigneeId
    assigneeName
    snoozedUntil
    viewerCan
    agent { id name avatarUrl }
    decidedBy { id kind name }
    answer { options text }
    question { text multiple allowText options { id label description } }
    request { tool input digest }
    spending { agentId costMicro tokens }
  }
`)

export type ApprovalRecord = ResultOf<typeof ApprovalFields>

export const ApprovalQuery = graphql(
  `
    query ApprovalShown($orgId: Id!, $id: Id!) {
      approval(orgId: $orgId, id: $id) { ...ApprovalFields }
    }
  `,
  [ApprovalFields],
)
