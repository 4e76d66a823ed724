// An invitation beside the list: whether it is still valid, and its actions.
import { RotateCw, X } from 'lucide-react'
import { graphql } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import { useRefused } from '../../permissions/gate'
import { ActionButton } from '../../ui/actions'
import { Badge } from '../../ui/badge'
import { Fact, Facts } from '../../ui/panel'
import { Peek } from '../../ui/peek'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { Time } from '../../ui/time'
import { type Invitation, InvitationFields, useInvitationActs } from './invitation'
import { LinkSent } from './invitations'
import { ROLE_MEANINGS, ROLE_NAMES } from './roles'

const InvitationQuery = graphql(
  `
  query Invitation($orgId: Id!, $id: Id!) {
    invitation(orgId: $orgId, id: $id) { ...InvitationFields }
  }
`,
  [InvitationFields],
)

export function InvitationPeek({ id, onClose }: { id: number; onClose: () => void }) {
  const { id: orgId } = useOrg()
  const { data, error, loading, refetch } = useLive({
    query: InvitationQuery,
    variables: { orgId, id },
    on: ({ kind, id: changed }) => kind === 'INVITATION' && changed === id,
  })
  const invitation = data?.invitation
  return (
    <Peek title={invitation?.email ?? 'Invitation'} onClose={onClose}>
      {error && !invitation ? (
        <ProblemView error={error} retry={refetch} />
      ) : loading || !invitation ? (
        <ListSkeleton />
      ) : (
        <div className="space-y-6 p-4">
          <InvitationFacts invitation={invitation} />
          {!invitation.acceptedAt && !invitation.revokedAt && <Acts invitation={invitation} />}
        </div>
      )}
    </Peek>
  )
}

function InvitationFacts({ invitation }: { invitation: Invitation }) {
  const { role, inviter, createdAt, expiresAt } = invitation
  return (
    <Facts>
      <Fact name="State">
        <State invitation={invitation} />
      </Fact>
      <Fact name="Role">
        {ROLE_NAMES[role]}
        <span className="block text-sm text-muted">{ROLE_MEANINGS[role]}</span>
      </Fact>
      <Fact name="Invited">
        <Time at={createdAt} /> {inviter && <>by {inviter.name}</>}
      </Fact>
      <Fact name="Link sent">
        <LinkSent invitation={invitation} />
      </Fact>
      <Fact name="Expires">
        <Time at={expiresAt} />
      </Fact>
    </Facts>
  )
}

function State({ invitation: { acceptedAt, revokedAt, expiresAt } }: { invitation: Invitation }) {
  if (acceptedAt) return <Badge tone="ok">Accepted</Badge>
  if (revokedAt) return <Badge>Revoked</Badge>
  if (new Date(expiresAt) <= new Date()) return <Badge tone="danger">Expired</Badge>
  return <Badge tone="info">Open</Badge>
}

function Acts({ invitation }: { invitation: Invitation }) {
  const { resending, resend, revoke, question } = useInvitationActs(invitation)
  const of = { group: 'Invitation', refused: useRefused('member.edit') }
  const resendIt = { id: 'invitation.resend', label: 'Send the invitation again', ...of, run: resend }
  const revokeIt = { id: 'invitation.revoke', label: 'Revoke the invitation', ...of, run: revoke }
  return (
    <div className="flex flex-wrap gap-2">
      <ActionButton icon={RotateCw} busy={resending} action={resendIt}>
        Resend
      </ActionButton>
      <ActionButton icon={X} action={revokeIt}>
        Revoke
      </ActionButton>
      {question}
    </div>
  )
}
