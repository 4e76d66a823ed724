// MCP servers: tools that agents may call.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { Plug, Plus } from 'lucide-react'
import { graphql, type ResultOf } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import { useRefused } from '../../permissions/gate'
import { ActionButton } from '../../ui/actions'
import { Badge } from '../../ui/badge'
import { Checkbox } from '../../ui/choices'
import { Empty } from '../../ui/empty'
import { PageHeader } from '../../ui/page'
import { Pager } from '../../ui/pager'
import { WithPeek } from '../../ui/peek'
import { ProblemView } from '../../ui/problem'
import { SearchInput } from '../../ui/search-input'
import { ListSkeleton } from '../../ui/skeleton'
import { type Column, Table } from '../../ui/table'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import { CreateMcpServer } from './create-mcp-server'
import { McpServerPeek } from './mcp-server-peek'

const PAGE = 200

const McpServersQuery = graphql(`
  query McpServers($orgId: Id!, $page: Int!, $limit: Int!, $search: String, $includeArchived: Boolean) {
    mcpServers(orgId: $orgId, page: $page, limit: $limit, search: $search, sort: NAME, includeArchived: $includeArchived) {
      total
      data { id name description transport command url updatedAt archivedAt assignmentCount }
    }
  }
`)

type Row = NonNullable<ResultOf<typeof McpServersQuery>['mcpServers']>['data'][number]

const COLUMNS: Column<Row>[] = [
  {
    id: 'name',
    head: 'Name',
    width: '1.4fr',
    cell: ({ name, description, archivedAt }) => (
      <span className="min-w-0">
        <span className="flex items-center gap-2">
          <span className="truncate font-medium">
            <Visible text={name} />
          </span>
          {archivedAt && <Badge>Archived</Badge>}
        </span>
        {description && <span className="block truncate text-sm text-muted">{description}</span>}
      </span>
    ),
  },
  {
    id: 'where',
    head: 'Where',
    width: '1.6fr',
    from: 'md',
    cell: ({ command, url }) => (
      <span className="truncate font-mono text-sm">
        <Visible text={url ?? command ?? ''} />
      </span>
    ),
  },
  {
    id: 'agents',
    head: 'Agents',
    width: '5rem',
    cell: ({ assignmentCount }) => <span className="tabular-nums">{assignmentCount || '–'}</span>,
  },
  {
    id: 'updated',
    head: 'Changed',
    width: '8rem',
    from: 'sm',
    cell: ({ updatedAt }) => <Time at={updatedAt} />,
  },
]

export function McpServersPage() {
  const org = useOrg()
  const search = useSearch({ from: '/inside/o/$org/mcp-servers' })
  const navigate = useNavigate({ from: '/o/$org/mcp-servers' })
  const set = (change: Partial<typeof search>) =>
    void navigate({ search: (before) => ({ ...before, ...change }) })
  const page = search.page ?? 1
  const variables = {
    orgId: org.id,
    page,
    limit: PAGE,
    search: search.q ?? null,
    includeArchived: search.archived ?? false,
  }
  const { data, error, loading, refetch } = useLive({ query: McpServersQuery, variables, on: ['MCP_SERVER'] })
  const servers = data?.mcpServers
  const make = {
    id: 'mcp-servers.new',
    label: 'New MCP server',
    group: 'MCP servers',
    keys: 'c',
    also: 'create',
    refused: useRefused('mcp.create'),
    run: () => set({ open: 'new' }),
  }
  const create = <ActionButton action={make} look="primary" icon={Plus} />
  return (
    <>
      <PageHeader title="MCP servers" about="Tools that agents may call." actions={create}>
        <div className="flex flex-wrap items-center gap-4 pb-2.5">
          <SearchInput
            label="Search MCP servers"
            value={search.q}
            onValue={(q) => set({ q, page: undefined })}
          />
          <Checkbox
            label="Show archived ones"
            checked={search.archived ?? false}
            onChecked={(archived) => set({ archived: archived || undefined, page: undefined })}
          />
        </div>
      </PageHeader>
      {error && !servers ? (
        <ProblemView error={error} retry={refetch} />
      ) : loading || !servers ? (
        <ListSkeleton />
      ) : (
        <WithPeek
          list={
            <>
              <Table
                label="MCP servers"
                items={servers.data}
                idOf={idOf}
                nameOf={nameOf}
                columns={COLUMNS}
                question={JSON.stringify(variables)}
                openId={search.peek}
                onOpen={({ id }) => set({ peek: id })}
                onActive={({ id }) => search.peek && set({ peek: id })}
                empty={
                  search.q ? (
                    <Empty icon={Plug} title="No MCP server has this name" />
                  ) : (
                    <Empty
                      icon={Plug}
                      title="No MCP servers yet"
                      action={create}
                      command={`mutation {\n  createMcpServer(orgId: ${org.id}, input: {\n    name: "tickets", transport: HTTP, url: "https://tickets.example.com/mcp"\n  }) { id }\n}`}
                    >
                      An MCP server gives agents tools: tickets, a database, a calendar. It is reached by its
                      address, or runs as a command beside the agent.
                    </Empty>
                  )
                }
              />
              <Pager
                page={page}
                size={PAGE}
                total={servers.total}
                onPage={(to) => set({ page: to > 1 ? to : undefined })}
              />
            </>
          }
          peek={
            search.peek && (
              <McpServerPeek key={search.peek} id={search.peek} onClose={() => set({ peek: undefined })} />
            )
          }
        />
      )}
      {search.open === 'new' && (
        <CreateMcpServer
          onClose={() => set({ open: undefined })}
          onCreated={(id) => set({ open: undefined, peek: id, q: undefined })}
        />
      )}
    </>
  )
}

const idOf = ({ id }: Row) => id
const nameOf = ({ name }: Row) => name
