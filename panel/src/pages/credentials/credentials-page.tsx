// Credentials: secrets for agents. Values can be set but never read.
import { KeyRound } from 'lucide-react'
import { graphql, type ResultOf } from '../../api/graphql'
import {
  AGENTS_COLUMN,
  CHANGED_COLUMN,
  CREATED_COLUMN,
  nameColumn,
  ResourcePage,
} from '../../app/resource-page'
import type { Column } from '../../ui/table'
import { Time } from '../../ui/time'
import { CreateCredential } from './create-credential'
import { CredentialPeek } from './credential-peek'
import { kindName } from './kinds'

const CredentialsQuery = graphql(`
  query Credentials($orgId: Id!, $page: Int!, $limit: Int!, $search: String, $sort: ListSort, $includeArchived: Boolean) {
    credentials(orgId: $orgId, page: $page, limit: $limit, search: $search, sort: $sort, includeArchived: $includeArchived) {
      total
      data { id name description kind createdAt updatedAt lastUsedAt archivedAt assignmentCount }
    }
  }
`)

type Data = ResultOf<typeof CredentialsQuery>

const COLUMNS: Column<NonNullable<Data['credentials']>['data'][number]>[] = [
  nameColumn('2fr'),
  { id: 'kind', head: 'Kind', width: '10rem', from: 'md', cell: ({ kind }) => kindName(kind) },
  AGENTS_COLUMN,
  {
    id: 'used',
    head: 'Last used',
    width: '8rem',
    from: 'md',
    cell: ({ lastUsedAt }) => <Time at={lastUsedAt} />,
  },
  CREATED_COLUMN,
  CHANGED_COLUMN,
]

export function CredentialsPage() {
  return (
    <ResourcePage
      path="credentials"
      title="Credentials"
      about="Secrets that agents use. Values are never shown again."
      doc="tools.md#a-credential"
      icon={KeyRound}
      names={['credential', 'credentials']}
      query={CredentialsQuery}
      pageOf={({ credentials }) => credentials}
      on={['CREDENTIAL']}
      columns={COLUMNS}
      may="credential.edit"
      hint="Search for part of a name."
      empty={{
        title: 'No credentials yet',
        about:
          'A credential is a key, a password or a certificate that an agent needs for its work. It is stored sealed; servers add it to their agents’ requests to the addresses that it is for.',
        command: (org) =>
          `curl -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \\\n  -d '{"name": "ticket system", "kind": "api-key", "fields": [{"label": "key", "value": "…"}]}' \\\n  ${location.origin}/v1/org/${org}/credential`,
      }}
      peek={(of) => <CredentialPeek {...of} />}
      create={(of) => <CreateCredential {...of} />}
    />
  )
}
