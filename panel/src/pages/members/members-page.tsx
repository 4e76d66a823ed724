// The people of the organization, their roles, and who is invited.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { ShieldCheck, ShieldOff, UserPlus, Users } from 'lucide-react'
import { graphql, type ResultOf } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import { useViewer } from '../../app/viewer'
import { Gate } from '../../permissions/gate'
import { Avatar } from '../../ui/avatar'
import { Badge } from '../../ui/badge'
import { Button } from '../../ui/button'
import { Empty } from '../../ui/empty'
import { PageHeader } from '../../ui/page'
import { Pager } from '../../ui/pager'
import { ProblemView } from '../../ui/problem'
import { SearchInput } from '../../ui/search-input'
import { ListSkeleton } from '../../ui/skeleton'
import { type Column, Table } from '../../ui/table'
import { Tabs } from '../../ui/tabs'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import { Invitations, useInvitations } from './invitations'
import { InviteDialog } from './invite-dialog'
import { MemberMenu } from './member-menu'
import { ROLE_MEANINGS, ROLE_NAMES } from './roles'

const PAGE = 200

const MembersQuery = graphql(`
  query Members($orgId: Id!, $page: Int!, $limit: Int!, $search: String) {
    members(orgId: $orgId, page: $page, limit: $limit, search: $search, sort: NAME) {
      total
      data { userId organizationId name email emailConfirmed avatarUrl role hasSecondFactor lastSeenAt createdAt }
    }
  }
`)

export type Member = NonNullable<ResultOf<typeof MembersQuery>['members']>['data'][number]

const COLUMNS: Column<Member>[] = [
  { id: 'name', head: 'Name', width: '2fr', cell: (member) => <Person member={member} /> },
  {
    id: 'role',
    head: 'Role',
    width: '7rem',
    cell: ({ role }) => <Badge tip={ROLE_MEANINGS[role]}>{ROLE_NAMES[role]}</Badge>,
  },
  {
    id: 'factor',
    head: 'Second factor',
    width: '8rem',
    from: 'md',
    cell: ({ hasSecondFactor }) =>
      hasSecondFactor ? (
        <Badge tone="ok" icon={ShieldCheck}>
          On
        </Badge>
      ) : (
        <Badge icon={ShieldOff}>Off</Badge>
      ),
  },
  {
    id: 'seen',
    head: 'Last seen',
    width: '8rem',
    from: 'sm',
    cell: ({ lastSeenAt }) => <Time at={lastSeenAt} />,
  },
  { id: 'menu', head: '', width: '2.5rem', align: 'end', cell: (member) => <MemberMenu member={member} /> },
]

export function MembersPage() {
  const org = useOrg()
  const search = useSearch({ from: '/inside/o/$org/members' })
  const navigate = useNavigate({ from: '/o/$org/members' })
  const set = (change: Partial<typeof search>) =>
    void navigate({ search: (before) => ({ ...before, ...change }) })
  const page = search.page ?? 1
  const variables = { orgId: org.id, page, limit: PAGE, search: search.q ?? null }
  const { data, error, loading, refetch } = useLive({
    query: MembersQuery,
    variables,
    on: ['MEMBER'],
  })
  const invitations = useInvitations()
  const members = data?.members
  const tab = search.tab === 'invitations' ? 'invitations' : 'members'
  const invite = (
    <Gate may="member.edit">
      <Button look="primary" icon={UserPlus} onClick={() => set({ open: 'new' })}>
        Invite
      </Button>
    </Gate>
  )
  return (
    <>
      <PageHeader title="Members" actions={invite}>
        {tab === 'members' && (
          <div className="pb-2">
            <SearchInput
              label="Search members"
              value={search.q}
              onValue={(q) => set({ q, page: undefined })}
            />
          </div>
        )}
        <Tabs
          label="Members and invitations"
          current={tab}
          tabs={[
            { id: 'members', label: 'Members', count: members?.total },
            { id: 'invitations', label: 'Invitations', count: invitations.data?.invitations?.total },
          ]}
        />
      </PageHeader>
      {tab === 'invitations' ? (
        <Invitations live={invitations} invite={invite} />
      ) : error && !members ? (
        <ProblemView error={error} retry={refetch} />
      ) : loading || !members ? (
        <ListSkeleton />
      ) : (
        <>
          <Table
            label="Members"
            items={members.data}
            idOf={idOf}
            nameOf={nameOf}
            columns={COLUMNS}
            question={JSON.stringify(variables)}
            empty={
              <Empty icon={Users} title="Nobody has this name">
                Look for a part of the name or of the address.
              </Empty>
            }
          />
          <Pager
            page={page}
            size={PAGE}
            total={members.total}
            onPage={(to) => set({ page: to > 1 ? to : undefined })}
          />
        </>
      )}
      {search.open === 'new' && (
        <InviteDialog
          onClose={() => set({ open: undefined })}
          onInvited={() => set({ open: undefined, tab: 'invitations' })}
        />
      )}
    </>
  )
}

const idOf = ({ userId }: Member) => userId
const nameOf = ({ name, role }: Member) => `${name}, ${ROLE_NAMES[role]}`

function Person({ member: { userId, name, email, emailConfirmed, avatarUrl } }: { member: Member }) {
  const { user } = useViewer()
  return (
    <span className="flex min-w-0 items-center gap-2.5 py-1">
      <Avatar name={name} url={avatarUrl} />
      <span className="min-w-0">
        <span className="block truncate font-medium">
          <Visible text={name} />
          {userId === user.id && <span className="ml-1.5 font-normal text-muted">you</span>}
        </span>
        <span className="block truncate text-sm text-muted">
          {email}
          {!emailConfirmed && ', not confirmed'}
        </span>
      </span>
    </span>
  )
}
