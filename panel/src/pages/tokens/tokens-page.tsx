// Service tokens: how programs sign in. The secret is shown once; permissions can be changed later.
import { KeySquare } from 'lucide-react'
import { useState } from 'react'
import { graphql, type ResultOf } from '../../api/graphql'
import { CREATED_COLUMN, ResourcePage } from '../../app/resource-page'
import { ShownOnce } from '../../ui/shown-once'
import type { Column } from '../../ui/table'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import { CreateToken } from './create-token'
import { TokenPeek } from './token-peek'
import { TokenState } from './token-state'

const TokensQuery = graphql(`
  query ServiceTokens($orgId: Id!, $page: Int!, $limit: Int!, $search: String, $sort: ListSort, $includeArchived: Boolean) {
    serviceTokens(orgId: $orgId, page: $page, limit: $limit, search: $search, sort: $sort, includeRevoked: $includeArchived) {
      total
      data { id name hint permissions createdAt expiresAt lastUsedAt revokedAt previousExpiresAt }
    }
  }
`)

type Token = NonNullable<ResultOf<typeof TokensQuery>['serviceTokens']>['data'][number]

const COLUMNS: Column<Token>[] = [
  {
    id: 'name',
    head: 'Name',
    width: '2fr',
    sort: 'NAME',
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
  CREATED_COLUMN,
]

export function TokensPage() {
  const [issued, setIssued] = useState<{ name: string; secret: string } | null>(null)
  const onIssued = (name: string, secret: string) => setIssued({ name, secret })
  return (
    <>
      <ResourcePage
        path="tokens"
        isNewestFirst
        title="Service tokens"
        about="How programs sign in."
        doc="keys.md#replacing-a-service-token"
        icon={KeySquare}
        names={['token', 'tokens']}
        query={TokensQuery}
        pageOf={({ serviceTokens }) => serviceTokens}
        on={['SERVICE_TOKEN']}
        columns={COLUMNS}
        may="token.edit"
        also="create issue"
        past="revoked"
        empty={{
          title: 'No service tokens yet',
          about:
            'A program that uses the API or MCP signs in with a token. Give it only what it needs; you can change that later, and revoke it at any time.',
          command: (org) =>
            `muster token create --org ${org} --name "nightly report" --permission agent.view`,
        }}
        peek={(of) => <TokenPeek {...of} onIssued={onIssued} />}
        create={({ onClose }) => (
          <CreateToken
            onClose={onClose}
            onIssued={(name, secret) => {
              onClose()
              onIssued(name, secret)
            }}
          />
        )}
      />
      <ShownOnce
        open={issued !== null}
        title={`The secret of ${issued?.name ?? 'the token'}`}
        about="Programs send it as “Authorization: Bearer …”. Keep it where your other secrets are."
        secrets={issued ? [{ label: 'Secret', text: issued.secret }] : []}
        onDone={() => setIssued(null)}
      />
    </>
  )
}
