// MCP servers: tools for agents.
import { Plug } from 'lucide-react'
import { graphql, type ResultOf } from '../../api/graphql'
import {
  AGENTS_COLUMN,
  CHANGED_COLUMN,
  CREATED_COLUMN,
  nameColumn,
  ResourcePage,
} from '../../app/resource-page'
import { Badge } from '../../ui/badge'
import type { Column } from '../../ui/table'
import { Visible } from '../../ui/visible'
import { CreateMcpServer } from './create-mcp-server'
import { McpServerPeek } from './mcp-server-peek'

const McpServersQuery = graphql(`
  query McpServers($orgId: Id!, $page: Int!, $limit: Int!, $search: String, $sort: ListSort, $includeArchived: Boolean) {
    mcpServers(orgId: $orgId, page: $page, limit: $limit, search: $search, sort: $sort, includeArchived: $includeArchived) {
      total
      data { id name description transport command url createdAt updatedAt archivedAt assignmentCount newTools }
    }
  }
`)

type Data = ResultOf<typeof McpServersQuery>

const COLUMNS: Column<NonNullable<Data['mcpServers']>['data'][number]>[] = [
  nameColumn('1.4fr'),
  {
    id: 'where',
    head: 'Where',
    width: '1.6fr',
    from: 'md',
    cell: ({ command, url, newTools }) => (
      <>
        <span className="truncate font-mono text-sm">
          <Visible text={url ?? command ?? ''} />
        </span>
        {newTools > 0 && (
          <Badge
            tone="warn"
            tip="Their definitions are new or have changed. They can’t be used until you accept them."
          >
            {newTools} {newTools === 1 ? 'tool' : 'tools'} to accept
          </Badge>
        )}
      </>
    ),
  },
  AGENTS_COLUMN,
  CREATED_COLUMN,
  CHANGED_COLUMN,
]

export function McpServersPage() {
  return (
    <ResourcePage
      path="mcp-servers"
      title="MCP servers"
      about="Tools that agents may call."
      doc="tools.md#an-mcp-server"
      icon={Plug}
      names={['MCP server', 'MCP servers']}
      query={McpServersQuery}
      pageOf={({ mcpServers }) => mcpServers}
      on={['MCP_SERVER']}
      columns={COLUMNS}
      may="mcp.create"
      empty={{
        title: 'No MCP servers yet',
        about:
          'An MCP server gives agents tools: tickets, a database, a calendar. It is reached by its address, or runs as a command beside the agent.',
        command: (org) =>
          `mutation {\n  createMcpServer(orgId: ${org}, input: {\n    name: "tickets", transport: HTTP, url: "https://tickets.example.com/mcp"\n  }) { id }\n}`,
      }}
      peek={(of) => <McpServerPeek {...of} />}
      create={(of) => <CreateMcpServer {...of} />}
    />
  )
}
