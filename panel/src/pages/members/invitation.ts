// An invitation as these pages show it, and what is done with one.
import { graphql, type ResultOf } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useOrg } from '../../app/organization'

export const InvitationFields = graphql(`
  fragment InvitationFields on Invitation @_unmask {
    id email role createdAt sentAt expiresAt acceptedAt revokedAt inviter { name }
  }
`)
const Resend = graphql(`
  mutation ResendInvitation($orgId: Id!, $id: Id!) {
    resendInvitation(orgId: $orgId, id: $id) { id sentAt expiresAt }
  }
`)
const Revoke = graphql(`
  mutation RevokeInvitation($orgId: Id!, $id: Id!) {
    revokeInvitation(orgId: $orgId, id: $id) { id revokedAt }
  }
`)

export type Invitation = ResultOf<typeof InvitationFields>

export function useInvitationActs({ id, email }: Invitation) {
  const { id: orgId } = useOrg()
  const [resend, revoke] = [useAct(Resend), useAct(Revoke)]
  return {
    resending: resend.pending,
    resend: () => void resend({ orgId, id }, { said: `Mailed ${email} again` }),
    revoke: () => void revoke({ orgId, id }, { said: `${email} is no longer invited` }),
  }
}
