// The organization's members with their roles, and invitations.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { ShieldCheck, ShieldOff, UserPlus, Users } from 'lucide-react'
import { graphql } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { FilterBar } from '../../app/filters'
import { useOrg } from '../../app/organization'
import { useViewer } from '../../app/viewer'
import { GatedForm, useRefused } from '../../permissions/gate'
import { ActionButton } from '../../ui/actions'
import { Avatar } from '../../ui/avatar'
import { Badge } from '../../ui/badge'
import { Empty } from '../../ui/empty'
import { PageHeader } from '../../ui/page'
import { Pager } from '../../ui/pager'
import { WithPeek } from '../../ui/peek'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { type Column, Table } from '../../ui/table'
import { Tabs } from '../../ui/tabs'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import { InvitationPeek } from './invitation-peek'
import { Invitations, useInvitations } from './invitations'
import { InviteDialog } from './invite-dialog'
import { type Member, MemberFields } from './member'
import { MemberMenu } from './member-menu'
import { MemberPeek } from './member-peek'
import { RoleMenu } from './role-menu'
import { ROLE_NAMES } from './roles'

const PAGE = 200

const MembersQuery = graphql(
  `
  query Members($orgId: Id!, $page: Int!, $limit: Int!, $search: String) {
    members(orgId: $orgId, page: $page, limit: $limit, search: $search, sort: NAME) {
      total
      data { ...MemberFields }
    }
  }
`,
  [MemberFields],
)

const COLUMNS: Column<Member>[] = [
  { id: 'name', head: 'Name', width: '2fr', cell: (member) => <Person member={member} /> },
  {
    id: 'role',
    head: 'Role',
    width: '7.5rem',
    cell: (member) => <RoleMenu member={member} />,
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
  const tab = search.tab === 'invitations' ? 'invitations' : 'members'
  const { page = 1, peek } = search
  const variables = {
    orgId: org.id,
    page: tab === 'members' ? page : 1,
    limit: PAGE,
    search: search.q ?? null,
  }
  const { data, error, loading, refetch } = useLive({ query: MembersQuery, variables, on: ['MEMBER'] })
  const invitations = useInvitations(tab === 'invitations' ? page : 1)
  const members = data?.members
  const onPage = (to: number) => set({ page: to > 1 ? to : undefined })
  const close = () => set({ peek: undefined })
  const closeForm = () => set({ open: undefined })
  const make = {
    id: 'members.invite',
    label: 'Invite a member',
    group: 'Members',
    keys: 'c',
    also: 'new member',
    refused: useRefused('member.edit'),
    run: () => set({ open: 'new' }),
  }
  const invite = (
    <ActionButton action={make} look="primary" icon={UserPlus}>
      Invite
    </ActionButton>
  )
  return (
    <>
      <PageHeader title="Members" doc="people.md" actions={invite}>
        <Tabs
          label="Members and invitations"
          current={tab}
          tabs={[
            { id: 'members', label: 'Members', link: linkOf('members'), count: members?.total },
            {
              id: 'invitations',
              label: 'Invitations',
              link: linkOf('invitations'),
              count: invitations.data?.invitations?.total,
            },
          ]}
        />
      </PageHeader>
      {tab === 'members' && (
        <FilterBar
          apart
          filters={{ q: search.q }}
          onChange={({ q }) => set({ q, page: undefined })}
          search="Search members"
        />
      )}
      <WithPeek
        list={
          tab === 'invitations' ? (
            <Invitations
              live={invitations}
              page={page}
              onPage={onPage}
              peek={peek}
              onPeek={(id) => set({ peek: id })}
              invite={invite}
            />
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
                openId={peek}
                onOpen={({ userId }) => set({ peek: userId })}
                onActive={({ userId }) => peek && set({ peek: userId })}
                empty={
                  <Empty icon={Users} title="No member has this name">
                    Search for part of a name or an address.
                  </Empty>
                }
              />
              <Pager page={page} size={PAGE} total={members.total} onPage={onPage} />
            </>
          )
        }
        peek={
          peek &&
          (tab === 'invitations' ? (
            <InvitationPeek key={peek} id={peek} onClose={close} />
          ) : (
            <MemberPeek key={peek} userId={peek} onClose={close} />
          ))
        }
      />
      {search.open === 'new' && (
        <GatedForm may="member.edit" onClose={closeForm}>
          <InviteDialog
            onClose={closeForm}
            onInvited={() => set({ open: undefined, tab: 'invitations', page: undefined, peek: undefined })}
          />
        </GatedForm>
      )}
    </>
  )
}

/** Each tab has its own pages and peek. */
const linkOf = (tab: string) => ({ to: '.', search: { tab } }) as object
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
