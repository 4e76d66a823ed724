// The live list of agents. Rows update in place; the order is frozen while someone works in the list.
import { Link } from '@tanstack/react-router'
import { Bot } from 'lucide-react'
import { type ReactNode, useCallback } from 'react'
import { type FragmentOf, graphql, type ResultOf, readFragment } from '../../api/graphql'
import { useFeed } from '../../api/use-feed'
import { useOrg } from '../../app/organization'
import { Avatar } from '../../ui/avatar'
import { Badge } from '../../ui/badge'
import { Count } from '../../ui/count'
import { Empty } from '../../ui/empty'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { Status } from '../../ui/status'
import { type Column, Table } from '../../ui/table'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import type { AgentsSearch } from './filters'
import { RunInRow, useRun } from './run'
import { directionOf, sortedBy } from './sorted'
import { stateInWords } from './words'

const AgentRow = graphql(`
  fragment AgentRow on Agent {
    id name role avatarUrl status statusReason pendingApprovals openConversations lastActivityAt
    runningModel resolvedModel restartPending syncPending viewerCan
    server { id name }
  }
`)
const AgentsQuery = graphql(
  `
  query Agents(
    $orgId: Id!, $after: String, $limit: Int, $search: String, $status: [AgentStatus!], $serverId: Id,
    $sort: AgentSort, $order: SortOrder
  ) {
    agentFeed(
      orgId: $orgId, after: $after, limit: $limit, search: $search, status: $status, serverId: $serverId,
      sort: $sort, order: $order
    ) {
      next
      total
      data { id name ...AgentRow }
    }
  }
`,
  [AgentRow],
)

type Item = NonNullable<ResultOf<typeof AgentsQuery>['agentFeed']>['data'][number]

const pageOf = (data: ResultOf<typeof AgentsQuery>) => data.agentFeed
const idOf = ({ id }: Item) => id
const nameOf = ({ name }: Item) => name
const read = (item: FragmentOf<typeof AgentRow>) => readFragment(AgentRow, item)

const COLUMNS: Column<Item>[] = [
  { id: 'name', head: 'Name', width: '2.2fr', sort: 'NAME', cell: (item) => <Name item={item} /> },
  {
    id: 'state',
    head: 'State',
    width: '9rem',
    from: 'sm',
    sort: 'STATUS',
    cell: (item) => <State item={item} />,
  },
  { id: 'waits', head: 'Waiting', width: '5rem', from: 'md', cell: (item) => <Waiting item={item} /> },
  {
    id: 'open',
    head: 'Open',
    width: '4rem',
    from: 'lg',
    cell: (item) => <span className="tabular-nums">{read(item).openConversations}</span>,
  },
  {
    id: 'activity',
    head: 'Last activity',
    width: '8.5rem',
    from: 'lg',
    sort: 'ACTIVITY',
    cell: (item) => <Time at={read(item).lastActivityAt} none="none yet" />,
  },
  { id: 'model', head: 'Model', width: '1fr', from: 'xl', cell: (item) => <Model item={item} /> },
  { id: 'server', head: 'Server', width: '1fr', from: 'md', cell: (item) => <ServerLink item={item} /> },
  {
    id: 'run',
    head: <span className="sr-only">Start or stop</span>,
    width: '2.75rem',
    align: 'end',
    cell: (item) => <RunCell item={item} />,
  },
]

interface Props {
  search: AgentsSearch
  onSort: (change: Pick<AgentsSearch, 'sort' | 'order'>) => void
  create: ReactNode
}

export function AgentList({ search, onSort, create }: Props) {
  const org = useOrg()
  const { q, status, server, sort = 'NAME', order } = search
  const feed = useFeed({
    query: AgentsQuery,
    variables: {
      orgId: org.id,
      search: q ?? null,
      status: status ?? null,
      serverId: server ?? null,
      sort,
      order: order ?? null,
    },
    pageOf,
    idOf,
    on: ['AGENT', 'APPROVAL', 'CONVERSATION'],
  })
  const linkOf = useCallback(
    ({ id }: Item) => ({ to: '/o/$org/agents/$id', params: { org: org.id, id } }) as never,
    [org.id],
  )
  if (feed.error && feed.items.length === 0) return <ProblemView error={feed.error} retry={feed.refetch} />
  if (feed.loading) return <ListSkeleton />
  return (
    <Table
      label="Agents"
      items={feed.items}
      idOf={idOf}
      nameOf={nameOf}
      linkOf={linkOf}
      columns={COLUMNS}
      sorting={{
        by: sort,
        isDescending: directionOf(sort, order) === 'desc',
        onSort: (by) => onSort(sortedBy(by as typeof sort, sort, order)),
      }}
      rowHeight={48}
      onEnd={feed.loadMore}
      question={feed.question}
      hasMore={feed.hasMore}
      empty={
        q || status || server ? (
          <Empty icon={Bot} title="No agent matches">
            Change or clear the filters.
          </Empty>
        ) : (
          <Empty
            icon={Bot}
            title="No agents yet"
            action={create}
            command={`curl -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \\\n  -d '{"name": "Marlow", "server_id": 1}' \\\n  ${location.origin}/v1/org/${org.id}/agent`}
          >
            An agent works for you on one of your servers: it answers people, uses the tools that you give it,
            and asks you before it does something risky.
          </Empty>
        )
      }
    />
  )
}

function Name({ item }: { item: Item }) {
  const agent = read(item)
  return (
    <span className="flex min-w-0 items-center gap-2.5">
      <Avatar name={agent.name} url={agent.avatarUrl} square />
      <span className="min-w-0">
        <span className="block truncate font-medium">
          <Visible text={agent.name} />
        </span>
        {agent.role && <span className="block truncate text-sm text-muted">{agent.role}</span>}
        <span className="mt-0.5 flex flex-wrap items-center gap-1.5 sm:hidden">
          <State item={item} />
          <Waiting item={item} none={null} />
        </span>
      </span>
    </span>
  )
}

function State({ item }: { item: Item }) {
  const agent = read(item)
  const { what } = stateInWords(agent.status, agent.statusReason)
  return (
    <span className="flex min-w-0 flex-wrap items-center gap-1">
      <Status of="agent" value={agent.status} tip={what} />
      {agent.statusReason === 'HOST_AWAY' && (
        <Badge tone="warn" tip={what}>
          Server away
        </Badge>
      )}
      {agent.restartPending && (
        <Badge tone="info" tip="The changes apply when the agent is started again.">
          Restart
        </Badge>
      )}
    </span>
  )
}

function Waiting({ item, none = '0' }: { item: Item; none?: ReactNode }) {
  const org = useOrg()
  const { id, pendingApprovals } = read(item)
  if (pendingApprovals === 0) return none
  return (
    <Link
      to="/o/$org/approvals"
      params={{ org: org.id }}
      search={{ tab: 'all', agent: id }}
      data-tip="Decide in Approvals"
    >
      <Count
        value={pendingApprovals}
        label={pendingApprovals === 1 ? 'decision waits' : 'decisions wait'}
        tone="danger"
      />
    </Link>
  )
}

function Model({ item }: { item: Item }) {
  const { runningModel, resolvedModel } = read(item)
  const model = runningModel ?? resolvedModel
  return model ? (
    <span className="truncate text-muted" data-tip={model}>
      <Visible text={model} />
    </span>
  ) : (
    <span className="truncate text-faint">the program’s default</span>
  )
}

function ServerLink({ item }: { item: Item }) {
  const org = useOrg()
  const { server } = read(item)
  return server ? (
    <Link
      to="/o/$org/servers/$id"
      params={{ org: org.id, id: server.id }}
      className="truncate hover:underline"
    >
      <Visible text={server.name} />
    </Link>
  ) : (
    <span className="text-faint">unknown</span>
  )
}

function RunCell({ item }: { item: Item }) {
  const agent = read(item)
  const run = useRun(agent)
  return <RunInRow agent={agent} run={run} />
}
