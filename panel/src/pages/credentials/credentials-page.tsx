// Credentials: the secrets that agents use. Their values go in and never come out.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { KeyRound, Plus } from 'lucide-react'
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
import { CreateCredential } from './create-credential'
import { CredentialPeek } from './credential-peek'
import { kindName } from './kinds'

const PAGE = 200

const CredentialsQuery = graphql(`
  query Credentials($orgId: Id!, $page: Int!, $limit: Int!, $search: String, $includeArchived: Boolean) {
    credentials(orgId: $orgId, page: $page, limit: $limit, search: $search, sort: NAME, includeArchived: $includeArchived) {
      total
      data { id name description kind updatedAt archivedAt assignmentCount }
    }
  }
`)

type Row = NonNullable<ResultOf<typeof CredentialsQuery>['credentials']>['data'][number]

const COLUMNS: Column<Row>[] = [
  {
    id: 'name',
    head: 'Name',
    width: '2fr',
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
  { id: 'kind', head: 'Kind', width: '10rem', from: 'md', cell: ({ kind }) => kindName(kind) },
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

export function CredentialsPage() {
  const org = useOrg()
  const search = useSearch({ from: '/inside/o/$org/credentials' })
  const navigate = useNavigate({ from: '/o/$org/credentials' })
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
  const { data, error, loading, refetch } = useLive({
    query: CredentialsQuery,
    variables,
    on: ['CREDENTIAL'],
  })
  const credentials = data?.credentials
  const make = {
    id: 'credentials.new',
    label: 'New credential',
    group: 'Credentials',
    keys: 'c',
    also: 'create',
    refused: useRefused('credential.edit'),
    run: () => set({ open: 'new' }),
  }
  const create = <ActionButton action={make} look="primary" icon={Plus} />
  return (
    <>
      <PageHeader
        title="Credentials"
        about="Secrets that agents use. Values are never shown again."
        actions={create}
      >
        <div className="flex flex-wrap items-center gap-4 pb-2.5">
          <SearchInput
            label="Search credentials"
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
      {error && !credentials ? (
        <ProblemView error={error} retry={refetch} />
      ) : loading || !credentials ? (
        <ListSkeleton />
      ) : (
        <WithPeek
          list={
            <>
              <Table
                label="Credentials"
                items={credentials.data}
                idOf={idOf}
                nameOf={nameOf}
                columns={COLUMNS}
                question={JSON.stringify(variables)}
                openId={search.peek}
                onOpen={({ id }) => set({ peek: id })}
                onActive={({ id }) => search.peek && set({ peek: id })}
                empty={
                  search.q ? (
                    <Empty icon={KeyRound} title="No credential has this name">
                      Search for part of a name.
                    </Empty>
                  ) : (
                    <Empty
                      icon={KeyRound}
                      title="No credentials yet"
                      action={create}
                      command={`curl -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \\\n  -d '{"name": "ticket system", "kind": "api-key", "fields": [{"label": "key", "value": "…"}]}' \\\n  ${location.origin}/v1/org/${org.id}/credential`}
                    >
                      A credential is a key, a password or a certificate that an agent needs for its work. It
                      is stored sealed; servers add it to their agents’ requests to the addresses that it is
                      for.
                    </Empty>
                  )
                }
              />
              <Pager
                page={page}
                size={PAGE}
                total={credentials.total}
                onPage={(to) => set({ page: to > 1 ? to : undefined })}
              />
            </>
          }
          peek={
            search.peek && (
              <CredentialPeek key={search.peek} id={search.peek} onClose={() => set({ peek: undefined })} />
            )
          }
        />
      )}
      {search.open === 'new' && (
        <CreateCredential
          onClose={() => set({ open: undefined })}
          onCreated={(id) => set({ open: undefined, peek: id, q: undefined })}
        />
      )}
    </>
  )
}

const idOf = ({ id }: Row) => id
const nameOf = ({ name }: Row) => name
