// Who is invited and has not answered yet.
import { MailPlus, RotateCw, X } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { graphql, type ResultOf } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { type Live, useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import { Gate } from '../../permissions/gate'
import { Badge } from '../../ui/badge'
import { Button, IconButton } from '../../ui/button'
import { Empty } from '../../ui/empty'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { type Column, Table } from '../../ui/table'
import { Time } from '../../ui/time'
import { HandOver } from './hand-over'
import { ROLE_NAMES } from './roles'

const InvitationsQuery = graphql(`
  query Invitations($orgId: Id!) {
    invitations(orgId: $orgId, page: 1, limit: 200) {
      total
      data { id email role createdAt sentAt expiresAt inviter { name } }
    }
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

type Answer = ResultOf<typeof InvitationsQuery>
type Invitation = NonNullable<Answer['invitations']>['data'][number]

export function useInvitations(): Live<Answer> {
  return useLive({ query: InvitationsQuery, variables: { orgId: useOrg().id }, on: ['INVITATION'] })
}

const COLUMNS: Column<Invitation>[] = [
  {
    id: 'email',
    head: 'Address',
    width: '2fr',
    cell: ({ email }) => <span className="truncate">{email}</span>,
  },
  { id: 'role', head: 'Role', width: '7rem', cell: ({ role }) => <Badge>{ROLE_NAMES[role]}</Badge> },
  { id: 'by', head: 'Invited by', width: '1fr', from: 'md', cell: ({ inviter }) => inviter?.name ?? '–' },
  {
    id: 'sent',
    head: 'Mailed',
    width: '8.5rem',
    cell: (invitation) => <Mailed invitation={invitation} />,
  },
  {
    id: 'expires',
    head: 'Expires',
    width: '8rem',
    from: 'md',
    cell: ({ expiresAt }) => <Time at={expiresAt} />,
  },
  {
    id: 'act',
    head: '',
    width: '8.5rem',
    align: 'end',
    cell: (invitation) => <Acts invitation={invitation} />,
  },
]

export function Invitations({
  live: { data, error, loading, refetch },
  invite,
}: {
  live: Live<Answer>
  invite: ReactNode
}) {
  const { id: orgId } = useOrg()
  const invitations = data?.invitations
  if (error && !invitations) return <ProblemView error={error} retry={refetch} />
  if (loading || !invitations) return <ListSkeleton />
  return (
    <Table
      label="Invitations"
      items={invitations.data}
      idOf={idOf}
      nameOf={nameOf}
      columns={COLUMNS}
      empty={
        <Empty
          icon={MailPlus}
          title="Nobody is invited"
          action={invite}
          command={`muster member invite --org ${orgId} --role OPERATOR --link --email …`}
        >
          People who are invited get a link that works once, within a week.
        </Empty>
      }
    />
  )
}

const idOf = ({ id }: Invitation) => id
const nameOf = ({ email }: Invitation) => email

/** As long as no mail has gone out, the way to do without. */
function Mailed({ invitation }: { invitation: Invitation }) {
  const { canMail } = useOrg()
  const [open, setOpen] = useState(false)
  if (invitation.sentAt) return <Time at={invitation.sentAt} />
  return (
    <>
      <button type="button" className="link text-left" onClick={() => setOpen(true)}>
        {canMail ? 'Not yet' : 'Hand over the link'}
      </button>
      {open && <HandOver invitation={invitation} onClose={() => setOpen(false)} />}
    </>
  )
}

function Acts({ invitation: { id, email } }: { invitation: Invitation }) {
  const { id: orgId } = useOrg()
  const [resend, revoke] = [useAct(Resend), useAct(Revoke)]
  return (
    <Gate may="member.edit">
      <Button
        size="sm"
        icon={RotateCw}
        busy={resend.pending}
        onClick={() => void resend({ orgId, id }, { said: `Mailed ${email} again` })}
      >
        Resend
      </Button>
      <IconButton
        icon={X}
        size="sm"
        label={`Revoke the invitation of ${email}`}
        onClick={() => void revoke({ orgId, id }, { said: `${email} is no longer invited` })}
      />
    </Gate>
  )
}
