// The audit log: who did what, and what was refused. Every part of an entry filters by its value.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { Download, ScrollText } from 'lucide-react'
import { useState } from 'react'
import { graphql, type ResultOf } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { authorOf } from '../../app/author'
import { lazyPart } from '../../app/lazy-page'
import { useOrg } from '../../app/organization'
import { ActionButton } from '../../ui/actions'
import { Empty } from '../../ui/empty'
import { PageHeader } from '../../ui/page'
import { Pager } from '../../ui/pager'
import { WithPeek } from '../../ui/peek'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { type Column, Table } from '../../ui/table'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import { EntryPeek } from './entry-peek'
import { AuditFilters, variablesOf } from './filters'
import { Outcome } from './outcome'
import { Seal } from './seal'
import { spaced } from './words'

const ExportDialog = lazyPart(() => import('./export-dialog'), 'ExportDialog')

const PAGE = 100

const AuditQuery = graphql(`
  query AuditLog(
    $orgId: Id!, $page: Int!, $limit: Int!, $search: String, $actorId: Id, $actorKind: ActorKind, $operation: String,
    $permission: Permission, $outcome: AuditOutcome, $targetId: Id, $targetKind: String, $from: Timestamp, $to: Timestamp
  ) {
    auditLog(
      orgId: $orgId, page: $page, limit: $limit, search: $search, actorId: $actorId, actorKind: $actorKind,
      operation: $operation, permission: $permission, outcome: $outcome, targetId: $targetId, targetKind: $targetKind,
      from: $from, to: $to
    ) {
      total
      data {
        id at lastAt count operation outcome code actorId actorKind actorName targetId targetKind targetName permission
        ip requestId decidedBy credentialKind credentialHint chainSeq
        fields { field before after secret }
      }
    }
  }
`)

export type Entry = NonNullable<ResultOf<typeof AuditQuery>['auditLog']>['data'][number]

const COLUMNS: Column<Entry>[] = [
  { id: 'at', head: 'When', width: '12.5rem', from: 'sm', cell: ({ at }) => <Time at={at} as="dated" /> },
  { id: 'actor', head: 'Who', width: '1.2fr', from: 'sm', cell: (entry) => <Actor entry={entry} /> },
  { id: 'operation', head: 'What', width: '1.4fr', cell: (entry) => <What entry={entry} /> },
  { id: 'target', head: 'On what', width: '1.4fr', from: 'md', cell: (entry) => <Target entry={entry} /> },
  { id: 'outcome', head: 'Outcome', width: '7rem', cell: (entry) => <Outcome entry={entry} /> },
]

export function AuditPage() {
  const org = useOrg()
  const search = useSearch({ from: '/inside/o/$org/audit' })
  const navigate = useNavigate({ from: '/o/$org/audit' })
  const set = (change: Partial<typeof search>) =>
    void navigate({ search: (before) => ({ ...before, page: undefined, entry: undefined, ...change }) })
  const page = search.page ?? 1
  const variables = { orgId: org.id, page, limit: PAGE, ...variablesOf(search) }
  const { data, error, loading, refetch } = useLive({
    query: AuditQuery,
    variables,
    // Later pages show history and do not update.
    on: page === 1 ? ['AUDIT_ENTRY'] : [],
  })
  const [exporting, setExporting] = useState(false)
  const log = data?.auditLog
  const found = log?.data.find(({ actorId }) => actorId === search.actor)
  const actor = found && authorOf(found.actorKind, found.actorName)
  const open = log?.data.find(({ id }) => id === search.entry)
  return (
    <>
      <PageHeader
        title="Audit log"
        doc="audit.md"
        beside={<Seal />}
        actions={
          org.can('audit.view') && (
            <ActionButton
              icon={Download}
              action={{
                id: 'audit.export',
                label: 'Export the audit log…',
                group: 'Audit log',
                also: 'download',
                refused: null,
                run: () => setExporting(true),
              }}
            >
              Export…
            </ActionButton>
          )
        }
      >
        {org.can('audit.view') && <AuditFilters search={search} actor={actor} onChange={set} />}
      </PageHeader>
      {error && !log ? (
        <ProblemView error={error} retry={refetch} />
      ) : loading || !log ? (
        <ListSkeleton rows={12} />
      ) : (
        <WithPeek
          list={
            <>
              <Table
                label="Audit log"
                items={log.data}
                idOf={idOf}
                nameOf={nameOf}
                columns={COLUMNS}
                question={JSON.stringify(variables)}
                openId={search.entry}
                onOpen={({ id }) => void navigate({ search: (before) => ({ ...before, entry: id }) })}
                onActive={({ id }) =>
                  search.entry &&
                  void navigate({ search: (before) => ({ ...before, entry: id }), replace: true })
                }
                empty={
                  <Empty
                    icon={ScrollText}
                    title="No entries"
                    command={`curl -H "Authorization: Bearer $TOKEN" \\\n  ${location.origin}/export/audit/${org.id}`}
                  >
                    Nothing that matches these filters was done or refused. Remove a filter, or choose another
                    period.
                  </Empty>
                }
              />
              <Pager
                page={page}
                size={PAGE}
                total={log.total}
                onPage={(to) => set({ page: to > 1 ? to : undefined })}
              />
            </>
          }
          peek={
            open && (
              <EntryPeek
                entry={open}
                onFilter={set}
                onClose={() => void navigate({ search: (before) => ({ ...before, entry: undefined }) })}
              />
            )
          }
        />
      )}
      {exporting && <ExportDialog from={search.from} to={search.to} onClose={() => setExporting(false)} />}
    </>
  )
}

const idOf = ({ id }: Entry) => id
const nameOf = ({ actorKind, actorName, operation, targetName }: Entry) =>
  `${authorOf(actorKind, actorName)}: ${spaced(operation)} ${targetName ?? ''}`

/** The action and, where other columns do not fit, the actor and the time. */
function What({ entry }: { entry: Entry }) {
  return (
    <span className="min-w-0">
      <span className="line-clamp-2 break-words">{spaced(entry.operation)}</span>
      {entry.targetKind && (
        <span className="block truncate text-sm @2xl:hidden">
          <Target entry={entry} />
        </span>
      )}
      <span className="flex flex-wrap gap-x-1.5 text-sm text-muted @lg:hidden">
        <Actor entry={entry} />
        <span aria-hidden>·</span>
        <Time at={entry.at} as="dated" />
      </span>
    </span>
  )
}

function Actor({ entry }: { entry: Entry }) {
  const isPerson = entry.actorName !== null && entry.actorKind !== 'SYSTEM'
  return (
    <span className={isPerson ? 'truncate' : 'truncate text-muted'}>
      <Visible text={authorOf(entry.actorKind, entry.actorName)} />
    </span>
  )
}

function Target({ entry: { targetKind, targetName, targetId } }: { entry: Entry }) {
  if (!targetKind) return <span className="text-faint">none</span>
  return (
    <span className="line-clamp-2 break-words">
      <span className="text-muted">{spaced(targetKind)}</span>{' '}
      {targetName ? <Visible text={targetName} /> : targetId}
    </span>
  )
}
