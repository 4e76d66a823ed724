// Contacts: the people who write to agents through channels.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { Contact } from 'lucide-react'
import { graphql, type ResultOf } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { ChannelFilter, FilterBar, NothingMatches, narrowing } from '../../app/filters'
import { useOrg } from '../../app/organization'
import { Avatar } from '../../ui/avatar'
import { Empty } from '../../ui/empty'
import { PageHeader } from '../../ui/page'
import { Pager } from '../../ui/pager'
import { WithPeek } from '../../ui/peek'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { words } from '../../ui/status'
import { type Column, Table } from '../../ui/table'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import { ContactPeek } from './contact-peek'

const PAGE = 200

const ContactsQuery = graphql(`
  query Contacts($orgId: Id!, $page: Int!, $limit: Int!, $search: String, $channelId: Id, $sort: ListSort) {
    contacts(orgId: $orgId, page: $page, limit: $limit, search: $search, channelId: $channelId, sort: $sort) {
      total
      data { id name note createdAt identities { id transport originId } }
    }
  }
`)

type Row = NonNullable<ResultOf<typeof ContactsQuery>['contacts']>['data'][number]

const COLUMNS: Column<Row>[] = [
  {
    id: 'name',
    head: 'Name',
    width: '1.4fr',
    sort: 'NAME',
    cell: ({ name, note }) => (
      <span className="flex min-w-0 items-center gap-2.5 py-1">
        <Avatar name={name} />
        <span className="min-w-0">
          <span className="block truncate font-medium">
            <Visible text={name} />
          </span>
          {note && (
            <span className="block truncate text-sm text-muted">
              <Visible text={note} />
            </span>
          )}
        </span>
      </span>
    ),
  },
  {
    id: 'addresses',
    head: 'Addresses',
    width: '1.6fr',
    from: 'sm',
    cell: ({ identities }) => (
      <span className="truncate text-muted">
        <Visible
          text={identities.map(({ transport, originId }) => `${words(transport)} ${originId}`).join(', ')}
        />
      </span>
    ),
  },
  {
    id: 'created',
    head: 'First seen',
    width: '8rem',
    from: 'md',
    sort: 'CREATED',
    cell: ({ createdAt }) => <Time at={createdAt} />,
  },
]

export function ContactsPage() {
  const org = useOrg()
  const search = useSearch({ from: '/inside/o/$org/contacts' })
  const navigate = useNavigate({ from: '/o/$org/contacts' })
  const set = (change: Partial<typeof search>) =>
    void navigate({ search: (before) => ({ ...before, ...change }) })
  const { q, channel, page = 1, peek } = search
  const variables = {
    orgId: org.id,
    page,
    limit: PAGE,
    search: q ?? null,
    channelId: channel ?? null,
    sort: search.sort ?? ('NAME' as const),
  }
  const { data, error, loading, refetch } = useLive({ query: ContactsQuery, variables, on: ['CONTACT'] })
  const contacts = data?.contacts
  const filters = { q, channel }
  const filter = (change: Partial<typeof filters>) => set({ ...change, page: undefined })
  return (
    <>
      <PageHeader
        title="Contacts"
        doc="personal-data.md#erasing-a-person"
        about="The people who write to your agents through channels."
      >
        <FilterBar filters={filters} onChange={filter} search="Search contacts">
          {org.can('agent.view') && (
            <ChannelFilter value={channel} onValue={(channel) => filter({ channel })} />
          )}
        </FilterBar>
      </PageHeader>
      <WithPeek
        list={
          error && !contacts ? (
            <ProblemView error={error} retry={refetch} />
          ) : loading || !contacts ? (
            <ListSkeleton />
          ) : (
            <>
              <Table
                label="Contacts"
                items={contacts.data}
                idOf={idOf}
                nameOf={nameOf}
                columns={COLUMNS}
                sorting={{
                  by: variables.sort,
                  onSort: (by) => set({ sort: by === 'CREATED' ? by : undefined, page: undefined }),
                }}
                question={JSON.stringify(variables)}
                openId={peek}
                onOpen={({ id }) => set({ peek: id })}
                onActive={({ id }) => peek && set({ peek: id })}
                empty={
                  narrowing(filters).length > 0 ? (
                    <NothingMatches icon={Contact} filters={filters} onChange={filter} />
                  ) : (
                    <Empty
                      icon={Contact}
                      title="No contacts yet"
                      command={`query { contacts(orgId: ${org.id}, page: 1, limit: 50) { data { id name } } }`}
                    >
                      People who write to an agent through a channel become contacts with their first message.
                    </Empty>
                  )
                }
              />
              <Pager
                page={page}
                size={PAGE}
                total={contacts.total}
                onPage={(to) => set({ page: to > 1 ? to : undefined })}
              />
            </>
          )
        }
        peek={peek && <ContactPeek key={peek} id={peek} onClose={() => set({ peek: undefined })} />}
      />
    </>
  )
}

const idOf = ({ id }: Row) => id
const nameOf = ({ name }: Row) => name
