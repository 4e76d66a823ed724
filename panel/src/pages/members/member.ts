// The member fields for these pages.
import { graphql, type ResultOf } from '../../api/graphql'

export const MemberFields = graphql(`
  fragment MemberFields on Member @_unmask {
    userId organizationId name email emailConfirmed avatarUrl role hasSecondFactor lastSeenAt createdAt
  }
`)

export type Member = ResultOf<typeof MemberFields>
