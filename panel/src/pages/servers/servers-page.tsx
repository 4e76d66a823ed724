// Servers: the machines that agents run on, their health and their agents.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { Plus, Server } from 'lucide-react'
import { useCallback, useState } from 'react'
import { graphql, type ResultOf } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { Chip, FilterBar } from '../../app/filters'
import { useOrg } from '../../app/organization'
import { GatedForm, useRefused } from '../../permissions/gate'
import { ActionButton } from '../../ui/actions'
import { Empty } from '../../ui/empty'
import { PageHeader } from '../../ui/page'
import { Pager } from '../../ui/pager'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { Status } from '../../ui/status'
import { type Column, Table } from '../../ui/table'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import { CreateServer } from './create-server'
import { Load } from './load'
import { type Fresh, Provisioned } from './provisioned'

const SIZE = 100
const STATES = [
  { value: 'OFFLINE', label: 'Offline' },
  { value: 'PENDING', label: 'Waiting to join' },
] as const

const ServersQuery = graphql(`
  query Servers($orgId: Id!, $page: Int!, $limit: Int!, $search: String, $sort: ListSort, $status: ServerStatus) {
    servers(orgId: $orgId, page: $page, limit: $limit, search: $search, status: $status, sort: $sort) {
      total
      data { id name region hostname status createdAt agentCount agentsRunning cpuPct ramPct load1 cpuCores lastSeenAt }
    }
  }
`)

type Row = NonNullable<ResultOf<typeof ServersQuery>['servers']>['data'][number]

const COLUMNS: Column<Row>[] = [
  {
    id: 'name',
    head: 'Name',
    width: '2fr',
    sort: 'NAME',
    cell: ({ name, hostname, region, status }) => (
      <span className="min-w-0">
        <span className="block truncate font-medium">
          <Visible text={name} />
        </span>
        <span className="block truncate text-sm text-muted">
          {[hostname !== name && hostname, region].filter(Boolean).join(' · ')}
        </span>
        <span className="mt-0.5 block sm:hidden">
          <Status of="server" value={status} />
        </span>
      </span>
    ),
  },
  {
    id: 'state',
    head: 'State',
    width: '8.5rem',
    from: 'sm',
    cell: ({ status }) => <Status of="server" value={status} />,
  },
  {
    id: 'agents',
    head: 'Agents',
    width: '5.5rem',
    cell: ({ agentCount, agentsRunning }) => (
      <span className="tabular-nums" data-tip={`${agentsRunning} of ${agentCount} run`}>
        {agentCount === 0 ? '0' : `${agentsRunning} of ${agentCount}`}
      </span>
    ),
  },
  {
    id: 'cpu',
    head: 'Processor',
    width: '7rem',
    from: 'md',
    cell: (row) => <Load label="Processor" of={row} pct={row.cpuPct} />,
  },
  {
    id: 'ram',
    head: 'Memory',
    width: '7rem',
    from: 'md',
    cell: (row) => <Load label="Memory" of={row} pct={row.ramPct} />,
  },
  {
    id: 'seen',
    head: 'Last seen',
    width: '8.5rem',
    from: 'lg',
    // Changes with each heartbeat.
    cell: ({ lastSeenAt }) => (
      <span data-ticking>
        <Time at={lastSeenAt} none="never" />
      </span>
    ),
  },
  {
    id: 'created',
    head: 'Created',
    width: '8rem',
    from: 'xl',
    sort: 'CREATED',
    cell: ({ createdAt }) => <Time at={createdAt} />,
  },
]

export function ServersPage() {
  const org = useOrg()
  const search = useSearch({ from: '/inside/o/$org/servers' })
  const navigate = useNavigate({ from: '/o/$org/servers' })
  const set = (change: Partial<typeof search>) =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true })
  const [fresh, setFresh] = useState<Fresh | null>(null)
  const page = search.page ?? 1
  const variables = {
    orgId: org.id,
    page,
    limit: SIZE,
    search: search.q ?? null,
    sort: search.sort ?? ('NAME' as const),
    status: search.status ?? null,
  }
  const { data, error, loading, refetch } = useLive({
    query: ServersQuery,
    variables,
    on: ['SERVER', 'AGENT'],
  })
  const servers = data?.servers
  const make = {
    id: 'servers.new',
    label: 'New server',
    group: 'Servers',
    keys: 'c',
    also: 'create connect',
    refused: useRefused('server.create'),
    run: () => set({ open: 'new' }),
  }
  const linkOf = useCallback(
    ({ id }: Row) => ({ to: '/o/$org/servers/$id', params: { org: org.id, id } }) as never,
    [org.id],
  )
  const create = <ActionButton action={make} look="primary" icon={Plus} />
  const close = () => set({ open: undefined })
  return (
    <>
      <PageHeader title="Servers" doc="hosts.md" about="The machines your agents run on." actions={create}>
        <FilterBar
          filters={{ q: search.q, status: search.status }}
          onChange={(change) => set({ ...change, page: undefined })}
          search="Search servers"
        >
          {STATES.map(({ value, label }) => (
            <Chip
              key={value}
              on={search.status === value}
              onToggle={() => set({ status: search.status === value ? undefined : value, page: undefined })}
            >
              {label}
            </Chip>
          ))}
        </FilterBar>
      </PageHeader>
      {error && !servers ? (
        <ProblemView error={error} retry={refetch} />
      ) : loading || !servers ? (
        <ListSkeleton />
      ) : (
        <>
          <Table
            label="Servers"
            items={[...servers.data]}
            idOf={idOf}
            nameOf={nameOf}
            linkOf={linkOf}
            columns={COLUMNS}
            sorting={{
              by: variables.sort,
              onSort: (by) => set({ sort: by === 'CREATED' ? by : undefined, page: undefined }),
            }}
            question={JSON.stringify(variables)}
            rowHeight={48}
            empty={
              search.q ? (
                <Empty icon={Server} title="No server has this name" />
              ) : search.status ? (
                <Empty icon={Server} title="No servers in this state" />
              ) : (
                <Empty
                  icon={Server}
                  title="No servers yet"
                  action={create}
                  command={`curl -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \\\n  -d '{"name": "desk"}' \\\n  ${location.origin}/v1/org/${org.id}/server`}
                >
                  Agents run on your own machines. Create a server and run one line on the machine: it
                  connects to Muster, so no port has to be open.
                </Empty>
              )
            }
          />
          <Pager page={page} size={SIZE} total={servers.total} onPage={(next) => set({ page: next })} />
        </>
      )}
      {search.open === 'new' && (
        <GatedForm may="server.create" onClose={close}>
          <CreateServer
            onClose={close}
            onCreated={(server) => {
              close()
              setFresh(server)
            }}
          />
        </GatedForm>
      )}
      {fresh && (
        <Provisioned
          server={fresh}
          onDone={() => {
            setFresh(null)
            void navigate({ to: '/o/$org/servers/$id', params: { org: org.id, id: fresh.id } })
          }}
        />
      )}
    </>
  )
}

const idOf = ({ id }: Row) => id
const nameOf = ({ name }: Row) => name
