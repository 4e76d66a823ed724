// The versions of the organization's rules, each with its author and reason. Any two can be compared.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { History as Icon } from 'lucide-react'
import { useLive } from '../../api/use-live'
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
import { writer } from './names'
import { NoRules } from './no-rules'
import { type General, HistoryQuery, type Permissions, type Policy, type Version } from './queries'
import { VersionPeek } from './version-peek'

const SIZE = 50

const COLUMNS: Column<Version>[] = [
  {
    id: 'reason',
    head: 'Reason',
    width: '2fr',
    cell: (version) => (
      <span className="min-w-0">
        <span className="block truncate">
          <Visible text={version.reason} />
        </span>
        {version.revertsTo !== null && (
          <span className="block truncate text-sm text-muted">Back to version {version.revertsTo}</span>
        )}
        <span className="block truncate text-sm text-muted sm:hidden">
          <Time at={version.at} /> by <Visible text={writer(version)} />
        </span>
      </span>
    ),
  },
  {
    id: 'who',
    head: 'By',
    width: '1fr',
    from: 'sm',
    cell: (version) => (
      <span className="truncate">
        <Visible text={writer(version)} />
      </span>
    ),
  },
  { id: 'when', head: 'When', width: '8rem', from: 'sm', cell: ({ at }) => <Time at={at} /> },
]

interface Props {
  policy: Policy
  permissions: Permissions
  general: General
  isOwned: boolean
}

export function History({ policy, permissions, general, isOwned }: Props) {
  const { id: orgId } = useOrg()
  const search = useSearch({ from: '/inside/o/$org/policies' })
  const navigate = useNavigate({ from: '/o/$org/policies' })
  const set = (change: Partial<typeof search>) =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true })
  const page = search.page ?? 1
  const { data, error, loading, refetch } = useLive({
    query: HistoryQuery,
    variables: { orgId, page, limit: SIZE },
    on: ['POLICY'],
  })
  const found = data?.policyHistory
  if (error && !found) return <ProblemView error={error} retry={refetch} />
  if (loading || !found) return <ListSkeleton />
  // While a file owns the rules, no version is in force.
  const newest = page === 1 && !isOwned ? found.data[0]?.id : undefined
  const number: Column<Version> = {
    id: 'number',
    head: 'Version',
    width: '7rem',
    cell: ({ id }) => (
      <span className="flex items-center gap-1.5 tabular-nums">
        {id}
        {id === newest && <Badge tone="accent">in force</Badge>}
      </span>
    ),
  }
  return (
    <WithPeek
      list={
        <>
          <NoRules policy={policy} general={general} />
          <Table
            label="Versions"
            // A new version is shown at once, at the top.
            question={`${page} ${found.total}`}
            items={[...found.data]}
            idOf={idOf}
            nameOf={nameOf}
            columns={[number, ...(search.peek ? COLUMNS.slice(0, 1) : COLUMNS)]}
            openId={search.peek}
            onOpen={({ id }) => set({ peek: id, against: undefined })}
            onActive={({ id }) => search.peek && set({ peek: id, against: undefined })}
            empty={
              <Empty
                icon={Icon}
                title="No versions"
                command={`mutation {\n  allowPermission(orgId: ${orgId}, input: { role: VIEWER, permission: "contact.view", reason: "The front desk" }) { version }\n}`}
              >
                The organization has never had rules of its own here. Each publication appears with its author
                and reason.
              </Empty>
            }
          />
          <Pager page={page} size={SIZE} total={found.total} onPage={(next) => set({ page: next })} />
        </>
      }
      peek={
        search.peek && (
          <VersionPeek
            key={search.peek}
            policy={policy}
            permissions={permissions}
            id={search.peek}
            isInForce={search.peek === newest}
            known={found.data}
            against={search.against}
            onAgainst={(against) => set({ against })}
            onClose={() => set({ peek: undefined, against: undefined })}
          />
        )
      }
    />
  )
}

const idOf = ({ id }: Version) => id
const nameOf = ({ id, reason }: Version) => `Version ${id}: ${reason}`
