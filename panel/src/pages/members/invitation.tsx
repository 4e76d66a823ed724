// The invitation fields for these pages, and their actions.
import { useState } from 'react'
import { graphql, type ResultOf } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { mailed, useMailWay } from '../../app/mail'
import { useOrg } from '../../app/organization'
import { ConfirmDialog } from '../../ui/confirm'
import { say } from '../../ui/toast-store'

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
  const way = useMailWay()
  const [asking, ask] = useState(false)
  const again = async () => {
    const { data } = await resend({ orgId, id })
    if (data?.resendInvitation) say(mailed(way, 'A new link', email))
  }
  return {
    resending: resend.pending,
    resend: () => void again(),
    revoke: () => ask(true),
    question: (
      <ConfirmDialog
        open={asking}
        onClose={() => ask(false)}
        title={`Revoke the invitation of ${email}?`}
        action="Revoke"
        busy={revoke.pending}
        onConfirm={async () => {
          await revoke({ orgId, id }, { said: `${email} is no longer invited` })
          ask(false)
        }}
      >
        The link that {email} has stops working.
      </ConfirmDialog>
    ),
  }
}
