// A page of named records: a paginated list, one record open beside it, and a dialog to create one.
import { useNavigate, useSearch } from '@tanstack/react-router'
import type { TypedDocumentNode } from '@urql/core'
import { type LucideIcon, Plus } from 'lucide-react'
import { Fragment, type ReactNode } from 'react'
import type { Interest } from '../api/live'
import { useLive } from '../api/use-live'
import { GatedForm, useRefused } from '../permissions/gate'
import { ActionButton } from '../ui/actions'
import { Badge } from '../ui/badge'
import { Empty } from '../ui/empty'
import { PageHeader } from '../ui/page'
import { Pager } from '../ui/pager'
import { WithPeek } from '../ui/peek'
import { ProblemView } from '../ui/problem'
import { ListSkeleton } from '../ui/skeleton'
import { type Column, Table } from '../ui/table'
import { Time } from '../ui/time'
import { Visible } from '../ui/visible'
import { Chip, FilterBar } from './filters'
import { useOrg } from './organization'

const PAGE = 200

interface Variables {
  orgId: number
  page: number
  limit: number
  search: string | null
  sort: 'NAME' | 'CREATED'
  includeArchived: boolean
}

interface Props<Data, Row> {
  /** The path below the organization. */
  path: 'credentials' | 'mcp-servers' | 'skills' | 'tokens'
  title: string
  about: string
  /** The part of the documentation. */
  doc: string
  icon: LucideIcon
  /** Singular and plural within a sentence. */
  names: [one: string, several: string]
  query: TypedDocumentNode<Data, Variables>
  pageOf: (data: Data) => { total: number; data: Row[] } | null
  on: Interest
  columns: Column<Row>[]
  /** The order of creation begins with the latest. */
  isNewestFirst?: boolean
  /** The permission to create one, and further palette keywords. */
  may: Parameters<typeof useRefused>[0]
  also?: string
  /** The word for inactive records. */
  past?: string
  /** The hint below the title if no name matches. */
  hint?: string
  empty: { title: string; about: string; command: (org: number) => string }
  peek: (of: { id: number; onClose: () => void }) => ReactNode
  create: (of: { onClose: () => void; onCreated: (id: number) => void }) => ReactNode
}

export function ResourcePage<Data, Row extends { id: number; name: string }>(props: Props<Data, Row>) {
  const { path, title, icon, names, past = 'archived', empty } = props
  const org = useOrg()
  // These routes share their search parameters.
  const search = useSearch({ from: `/inside/o/$org/${path}` as '/inside/o/$org/skills' })
  const navigate = useNavigate({ from: `/o/$org/${path}` as '/o/$org/skills' })
  const set = (change: Partial<typeof search>) =>
    void navigate({ search: (before) => ({ ...before, ...change }) })
  const page = search.page ?? 1
  const variables = {
    orgId: org.id,
    page,
    limit: PAGE,
    search: search.q ?? null,
    sort: search.sort ?? 'NAME',
    includeArchived: search.archived ?? false,
  }
  const { data, error, loading, refetch } = useLive({ query: props.query, variables, on: props.on })
  const records = data && props.pageOf(data)
  const make = {
    id: `${path}.new`,
    label: `New ${names[0]}`,
    group: title,
    keys: 'c',
    also: props.also ?? 'create',
    refused: useRefused(props.may),
    run: () => set({ open: 'new' }),
  }
  const create = <ActionButton action={make} look="primary" icon={Plus} />
  const close = () => set({ open: undefined })
  return (
    <>
      <PageHeader title={title} about={props.about} doc={props.doc} actions={create}>
        <FilterBar
          filters={{ q: search.q, archived: search.archived }}
          onChange={(change) => set({ ...change, page: undefined })}
          search={`Search ${names[1]}`}
        >
          <Chip
            on={search.archived ?? false}
            onToggle={() => set({ archived: search.archived ? undefined : true, page: undefined })}
          >
            Show {past} ones
          </Chip>
        </FilterBar>
      </PageHeader>
      {error && !records ? (
        <ProblemView error={error} retry={refetch} />
      ) : loading || !records ? (
        <ListSkeleton />
      ) : (
        <WithPeek
          list={
            <>
              <Table
                label={title}
                items={records.data}
                idOf={idOf}
                nameOf={nameOf}
                columns={props.columns}
                sorting={{
                  by: variables.sort,
                  isDescending: variables.sort === 'CREATED' && props.isNewestFirst,
                  onSort: (by) => set({ sort: by === 'CREATED' ? by : undefined, page: undefined }),
                }}
                question={JSON.stringify(variables)}
                openId={search.peek}
                onOpen={({ id }) => set({ peek: id })}
                onActive={({ id }) => search.peek && set({ peek: id })}
                empty={
                  search.q ? (
                    <Empty icon={icon} title={`No ${names[0]} has this name`}>
                      {props.hint}
                    </Empty>
                  ) : (
                    <Empty icon={icon} title={empty.title} action={create} command={empty.command(org.id)}>
                      {empty.about}
                    </Empty>
                  )
                }
              />
              <Pager
                page={page}
                size={PAGE}
                total={records.total}
                onPage={(to) => set({ page: to > 1 ? to : undefined })}
              />
            </>
          }
          peek={
            search.peek && (
              <Fragment key={search.peek}>
                {props.peek({ id: search.peek, onClose: () => set({ peek: undefined }) })}
              </Fragment>
            )
          }
        />
      )}
      {search.open === 'new' && (
        <GatedForm may={props.may} onClose={close}>
          {props.create({
            onClose: close,
            onCreated: (id) => set({ open: undefined, peek: id, q: undefined }),
          })}
        </GatedForm>
      )}
    </>
  )
}

const idOf = ({ id }: { id: number }) => id
const nameOf = ({ name }: { name: string }) => name

interface Named {
  name: string
  description: string | null
  archivedAt: string | null
}

/** The name column, with a description below each name. */
export const nameColumn = (width: string): Column<Named> => ({
  id: 'name',
  head: 'Name',
  width,
  sort: 'NAME',
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
})

/** The number of assigned agents. */
export const AGENTS_COLUMN: Column<{ assignmentCount: number }> = {
  id: 'agents',
  head: 'Agents',
  width: '5rem',
  cell: ({ assignmentCount }) => <span className="tabular-nums">{assignmentCount}</span>,
}

export const CREATED_COLUMN: Column<{ createdAt: string }> = {
  id: 'created',
  head: 'Created',
  width: '8rem',
  from: 'lg',
  sort: 'CREATED',
  cell: ({ createdAt }) => <Time at={createdAt} />,
}

export const CHANGED_COLUMN: Column<{ updatedAt: string | null }> = {
  id: 'updated',
  head: 'Changed',
  width: '8rem',
  from: 'sm',
  cell: ({ updatedAt }) => <Time at={updatedAt} />,
}
