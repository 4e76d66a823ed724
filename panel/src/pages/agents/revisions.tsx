// The revisions of an agent. Any two can be compared field by field; restoring one creates a new revision.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { History } from 'lucide-react'
import { graphql, type ResultOf } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { authorOf } from '../../app/author'
import { useOrg } from '../../app/organization'
import { Badge } from '../../ui/badge'
import { Empty } from '../../ui/empty'
import { Pager } from '../../ui/pager'
import { WithPeek } from '../../ui/peek'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { type Column, Table } from '../../ui/table'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import type { AgentRecord } from './agent-page'
import { Compare } from './compare'
import { labelOf } from './revision-diff'

const SIZE = 50

const RevisionsQuery = graphql(`
  query AgentRevisions($orgId: Id!, $agentId: Id!, $page: Int!, $limit: Int!) {
    agentRevisions(orgId: $orgId, agentId: $agentId, page: $page, limit: $limit) {
      total
      data { id revision createdAt authorKind authorName reason operation revertsTo changes }
    }
  }
`)

export type RevisionRow = NonNullable<ResultOf<typeof RevisionsQuery>['agentRevisions']>['data'][number]

/** A one-line summary of the changes. */
function changed({ changes, revision, revertsTo }: RevisionRow): string {
  if (revertsTo) return `Back to revision ${revertsTo}`
  if (revision === 1) return 'Created'
  const fields = typeof changes === 'object' && changes !== null ? Object.keys(changes) : []
  return fields.length > 0 ? fields.map(labelOf).join(', ') : 'Nothing that can be compared'
}

const COLUMNS: Column<RevisionRow>[] = [
  { id: 'number', head: 'Number', width: '4.5rem', cell: ({ revision }) => revision },
  {
    id: 'what',
    head: 'What changed',
    width: '2fr',
    cell: (row) => (
      <span className="min-w-0">
        <span className="block truncate">{changed(row)}</span>
        {row.reason && (
          <span className="block truncate text-sm text-muted">
            <Visible text={row.reason} />
          </span>
        )}
        <span className="block truncate text-sm text-muted sm:hidden">
          <Time at={row.createdAt} /> by {authorOf(row.authorKind, row.authorName)}
        </span>
      </span>
    ),
  },
  {
    id: 'who',
    head: 'By',
    width: '1fr',
    from: 'sm',
    cell: ({ authorKind, authorName }) => (
      <span className="truncate">{authorOf(authorKind, authorName)}</span>
    ),
  },
  { id: 'when', head: 'When', width: '8rem', from: 'sm', cell: ({ createdAt }) => <Time at={createdAt} /> },
]

export function Revisions({ agent }: { agent: AgentRecord }) {
  const { id: orgId } = useOrg()
  const search = useSearch({ from: '/inside/o/$org/agents/$id' })
  const navigate = useNavigate({ from: '/o/$org/agents/$id' })
  const set = (change: Partial<typeof search>) =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true })
  const page = search.page ?? 1
  const { data, error, loading, refetch } = useLive({
    query: RevisionsQuery,
    variables: { orgId, agentId: agent.id, page, limit: SIZE },
    on: ({ kind, id }) => kind === 'AGENT' && id === agent.id,
  })
  const found = data?.agentRevisions
  if (error && !found) return <ProblemView error={error} retry={refetch} />
  if (loading || !found) return <ListSkeleton />
  const columns = (search.revision ? COLUMNS.slice(0, 2) : COLUMNS).map((column) =>
    column.id === 'number'
      ? {
          ...column,
          cell: ({ revision }: RevisionRow) => (
            <span className="flex items-center gap-1.5 tabular-nums">
              {revision}
              {revision === agent.revision && <Badge tone="accent">now</Badge>}
            </span>
          ),
        }
      : column,
  )
  return (
    <WithPeek
      list={
        <>
          <Table
            label="Revisions"
            items={[...found.data]}
            idOf={idOf}
            nameOf={nameOf}
            columns={columns}
            openId={search.revision}
            onOpen={({ revision }) => set({ revision, against: undefined })}
            onActive={({ revision }) => search.revision && set({ revision, against: undefined })}
            empty={
              <Empty
                icon={History}
                title="No revisions"
                command={`mutation {\n  updateAgent(orgId: ${orgId}, id: ${agent.id}, input: { role: "Harbour master" }) { revision }\n}`}
              >
                Each change of its settings, credentials, MCP servers or skills appears here.
              </Empty>
            }
          />
          <Pager page={page} size={SIZE} total={found.total} onPage={(next) => set({ page: next })} />
        </>
      }
      peek={
        search.revision && (
          <Compare
            key={search.revision}
            agent={agent}
            revision={search.revision}
            against={search.against ?? before(search.revision, agent.revision)}
            known={found.data.map(({ revision }) => revision)}
            onAgainst={(against) => set({ against })}
            onClose={() => set({ revision: undefined, against: undefined })}
          />
        )
      }
    />
  )
}

/** An old revision is compared with the current one; the current one with its predecessor. */
const before = (revision: number, present: number) =>
  revision === present ? Math.max(1, present - 1) : present
const idOf = ({ revision }: RevisionRow) => revision
const nameOf = (row: RevisionRow) => `Revision ${row.revision}: ${changed(row)}`
