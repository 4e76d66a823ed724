// Unanswered invitations.
import { MailPlus, RotateCw, X } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { graphql, type ResultOf } from '../../api/graphql'
import { type Live, useLive } from '../../api/use-live'
import { useMailWay } from '../../app/mail'
import { useOrg } from '../../app/organization'
import { Gate } from '../../permissions/gate'
import { Badge } from '../../ui/badge'
import { Button, IconButton } from '../../ui/button'
import { Empty } from '../../ui/empty'
import { Pager } from '../../ui/pager'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { type Column, Table } from '../../ui/table'
import { Time } from '../../ui/time'
import { HandOver } from './hand-over'
import { type Invitation, InvitationFields, useInvitationActs } from './invitation'
import { ROLE_NAMES } from './roles'

const PAGE = 200

const InvitationsQuery = graphql(
  `
  query Invitations($orgId: Id!, $page: Int!, $limit: Int!) {
    invitations(orgId: $orgId, page: $page, limit: $limit) {
      total
      data { ...InvitationFields }
    }
  }
`,
  [InvitationFields],
)

type Answer = ResultOf<typeof InvitationsQuery>

export function useInvitations(page: number): Live<Answer> {
  const variables = { orgId: useOrg().id, page, limit: PAGE }
  return useLive({ query: InvitationsQuery, variables, on: ['INVITATION'] })
}

const COLUMNS: Column<Invitation>[] = [
  {
    id: 'email',
    head: 'Address',
    width: '2fr',
    cell: ({ email }) => <span className="truncate">{email}</span>,
  },
  { id: 'role', head: 'Role', width: '7rem', cell: ({ role }) => <Badge>{ROLE_NAMES[role]}</Badge> },
  {
    id: 'by',
    head: 'Invited by',
    width: '1fr',
    from: 'md',
    cell: ({ inviter }) => inviter?.name ?? 'An administrator',
  },
  {
    id: 'sent',
    head: 'Link sent',
    width: '8.5rem',
    cell: (invitation) => <LinkSent invitation={invitation} />,
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

interface Props {
  live: Live<Answer>
  page: number
  onPage: (page: number) => void
  peek: number | undefined
  onPeek: (id: number) => void
  invite: ReactNode
}

export function Invitations({ live, page, onPage, peek, onPeek, invite }: Props) {
  const { data, error, loading, refetch } = live
  const { id: orgId } = useOrg()
  const invitations = data?.invitations
  if (error && !invitations) return <ProblemView error={error} retry={refetch} />
  if (loading || !invitations) return <ListSkeleton />
  return (
    <>
      <Table
        label="Invitations"
        items={invitations.data}
        idOf={idOf}
        nameOf={nameOf}
        columns={COLUMNS}
        question={String(page)}
        openId={peek}
        onOpen={({ id }) => onPeek(id)}
        onActive={({ id }) => peek && onPeek(id)}
        empty={
          <Empty
            icon={MailPlus}
            title="No open invitations"
            action={invite}
            command={`muster member invite --org ${orgId} --role OPERATOR --link --email …`}
          >
            People who are invited get a link that works once, within a week.
          </Empty>
        }
      />
      <Pager page={page} size={PAGE} total={invitations.total} onPage={onPage} />
    </>
  )
}

const idOf = ({ id }: Invitation) => id
const nameOf = ({ email }: Invitation) => email

/** While no mail was sent, how to deliver the link without it. */
export function LinkSent({ invitation }: { invitation: Invitation }) {
  const way = useMailWay()
  const [open, setOpen] = useState(false)
  if (invitation.sentAt && way === 'SENT') return <Time at={invitation.sentAt} />
  return (
    <>
      <button type="button" className="link text-left" onClick={() => setOpen(true)}>
        {way === 'SENT' ? 'Not yet' : 'Hand over the link'}
      </button>
      {open && <HandOver invitation={invitation} onClose={() => setOpen(false)} />}
    </>
  )
}

function Acts({ invitation }: { invitation: Invitation }) {
  const { resending, resend, revoke, question } = useInvitationActs(invitation)
  const label = `Revoke the invitation of ${invitation.email}`
  return (
    <Gate may="member.edit">
      <Button size="sm" icon={RotateCw} busy={resending} onClick={resend}>
        Resend
      </Button>
      <IconButton icon={X} size="sm" label={label} onClick={revoke} />
      {question}
    </Gate>
  )
}
