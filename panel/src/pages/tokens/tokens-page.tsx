// Service tokens: what programs sign in with. Their secret is shown once; what they may do can be changed later.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { KeySquare, Plus } from 'lucide-react'
import { useState } from 'react'
import { graphql, type ResultOf } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import { useRefused } from '../../permissions/gate'
import { ActionButton } from '../../ui/actions'
import { Checkbox } from '../../ui/choices'
import { Empty } from '../../ui/empty'
import { PageHeader } from '../../ui/page'
import { Pager } from '../../ui/pager'
import { WithPeek } from '../../ui/peek'
import { ProblemView } from '../../ui/problem'
import { SearchInput } from '../../ui/search-input'
import { ShownOnce } from '../../ui/shown-once'
import { ListSkeleton } from '../../ui/skeleton'
import { type Column, Table } from '../../ui/table'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import { CreateToken } from './create-token'
import { TokenPeek } from './token-peek'
import { TokenState } from './token-state'

const PAGE = 200

const TokensQuery = graphql(`
  query ServiceTokens($orgId: Id!, $page: Int!, $limit: Int!, $search: String, $includeRevoked: Boolean) {
    serviceTokens(orgId: $orgId, page: $page, limit: $limit, search: $search, sort: NAME, includeRevoked: $includeRevoked) {
      total
      data { id name hint permissions expiresAt lastUsedAt revokedAt previousExpiresAt }
    }
  }
`)

type Token = NonNullable<ResultOf<typeof TokensQuery>['serviceTokens']>['data'][number]

const COLUMNS: Column<Token>[] = [
  {
    id: 'name',
    head: 'Name',
    width: '2fr',
    cell: ({ name, hint }) => (
      <span className="flex min-w-0 items-baseline gap-2">
        <span className="truncate font-medium">
          <Visible text={name} />
        </span>
        <span className="shrink-0 font-mono text-xs text-muted">…{hint}</span>
      </span>
    ),
  },
  { id: 'state', head: 'State', width: '7rem', cell: (token) => <TokenState token={token} /> },
  {
    id: 'permissions',
    head: 'May do',
    width: '9rem',
    from: 'md',
    cell: ({ permissions }) => `${permissions.length} permission${permissions.length === 1 ? '' : 's'}`,
  },
  {
    id: 'used',
    head: 'Last used',
    width: '8rem',
    from: 'sm',
    cell: ({ lastUsedAt }) => <Time at={lastUsedAt} />,
  },
  {
    id: 'expires',
    head: 'Expires',
    width: '8rem',
    from: 'md',
    cell: ({ expiresAt }) => <Time at={expiresAt} />,
  },
]

export function TokensPage() {
  const org = useOrg()
  const search = useSearch({ from: '/inside/o/$org/tokens' })
  const navigate = useNavigate({ from: '/o/$org/tokens' })
  const set = (change: Partial<typeof search>) =>
    void navigate({ search: (before) => ({ ...before, ...change }) })
  const [issued, setIssued] = useState<{ name: string; secret: string } | null>(null)
  const page = search.page ?? 1
  const variables = {
    orgId: org.id,
    page,
    limit: PAGE,
    search: search.q ?? null,
    includeRevoked: search.archived ?? false,
  }
  const { data, error, loading, refetch } = useLive({ query: TokensQuery, variables, on: ['SERVICE_TOKEN'] })
  const tokens = data?.serviceTokens
  const make = {
    id: 'tokens.new',
    label: 'New token',
    group: 'Service tokens',
    keys: 'c',
    also: 'create issue',
    refused: useRefused('token.edit'),
    run: () => set({ open: 'new' }),
  }
  const create = <ActionButton action={make} look="primary" icon={Plus} />
  return (
    <>
      <PageHeader title="Service tokens" about="What programs sign in with." actions={create}>
        <div className="flex flex-wrap items-center gap-4 pb-2.5">
          <SearchInput label="Search tokens" value={search.q} onValue={(q) => set({ q, page: undefined })} />
          <Checkbox
            label="Show revoked ones"
            checked={search.archived ?? false}
            onChecked={(archived) => set({ archived: archived || undefined, page: undefined })}
          />
        </div>
      </PageHeader>
      {error && !tokens ? (
        <ProblemView error={error} retry={refetch} />
      ) : loading || !tokens ? (
        <ListSkeleton />
      ) : (
        <WithPeek
          list={
            <>
              <Table
                label="Service tokens"
                items={tokens.data}
                idOf={idOf}
                nameOf={nameOf}
                columns={COLUMNS}
                question={JSON.stringify(variables)}
                openId={search.peek}
                onOpen={({ id }) => set({ peek: id })}
                onActive={({ id }) => search.peek && set({ peek: id })}
                empty={
                  search.q ? (
                    <Empty icon={KeySquare} title="No token has this name" />
                  ) : (
                    <Empty
                      icon={KeySquare}
                      title="No service tokens yet"
                      action={create}
                      command={`muster token create --org ${org.id} --name "nightly report" --permission agent.view`}
                    >
                      A program that uses the API or MCP signs in with a token. Give it only what it needs;
                      you can change that later, and revoke it at any time.
                    </Empty>
                  )
                }
              />
              <Pager
                page={page}
                size={PAGE}
                total={tokens.total}
                onPage={(to) => set({ page: to > 1 ? to : undefined })}
              />
            </>
          }
          peek={
            search.peek && (
              <TokenPeek
                key={search.peek}
                id={search.peek}
                onIssued={(name, secret) => setIssued({ name, secret })}
                onClose={() => set({ peek: undefined })}
              />
            )
          }
        />
      )}
      <CreateToken
        open={search.open === 'new'}
        onClose={() => set({ open: undefined })}
        onIssued={(name, secret) => {
          set({ open: undefined })
          setIssued({ name, secret })
        }}
      />
      <ShownOnce
        open={issued !== null}
        title={`The secret of ${issued?.name ?? 'the token'}`}
        about="Send it as `Authorization: Bearer …`. Keep it where your other secrets are."
        secrets={issued ? [{ label: 'Secret', text: issued.secret }] : []}
        onDone={() => setIssued(null)}
      />
    </>
  )
}

const idOf = ({ id }: Token) => id
const nameOf = ({ name }: Token) => name
