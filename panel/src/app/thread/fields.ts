// The message fields that a thread shows.
import { graphql, type ResultOf } from '../../api/graphql'

export const MessageFields = graphql(`
  fragment MessageFields on Message @_unmask {
    id
    seq
    role
    kind
    content
    status
    authorName
    authorUserId
    isUnproven
    createdAt
    turnId
    hostKey
    delivery { status code error sentAt }
    attachments { id filename mimeType sizeBytes url }
  }
`)

export type MessageRecord = ResultOf<typeof MessageFields>
