// When a credential was stored and last changed, and by whom. The names come from the audit log.
import { Link } from '@tanstack/react-router'
import { graphql } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { authorOf } from '../../app/author'
import { useOrg } from '../../app/organization'
import { Fact, Facts, Panel } from '../../ui/panel'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import type { Credential } from './credential-peek'

const KIND = 'credential'

const HistoryQuery = graphql(`
  query CredentialHistory($orgId: Id!, $id: Id!, $kind: String!) {
    created: auditLog(
      orgId: $orgId, page: 1, limit: 1, targetKind: $kind, targetId: $id, operation: "createCredential", outcome: ALLOWED
    ) { data { id at actorKind actorName } }
    changed: auditLog(
      orgId: $orgId, page: 1, limit: 1, targetKind: $kind, targetId: $id, outcome: ALLOWED
    ) { data { id at actorKind actorName } }
  }
`)

export function History({ credential: { id, createdAt, updatedAt } }: { credential: Credential }) {
  const org = useOrg()
  const mayRead = org.can('audit.view')
  const { data } = useLive({
    query: HistoryQuery,
    variables: { orgId: org.id, id, kind: KIND },
    on: ['AUDIT_ENTRY'],
    pause: !mayRead,
  })
  const [created, changed] = [data?.created?.data[0], data?.changed?.data[0]]
  return (
    <Panel title="History">
      <Facts>
        <Fact name="Stored">
          <Time at={createdAt} as="stamp" />
          <By entry={created} />
        </Fact>
        <Fact name="Last change">
          <Time at={changed?.at ?? updatedAt} as="stamp" />
          <By entry={changed} />
        </Fact>
      </Facts>
      {mayRead && (
        <Link
          to="/o/$org/audit"
          params={{ org: org.id }}
          search={{ targetKind: KIND, target: id }}
          className="link mt-2 inline-block text-sm"
        >
          All changes in the audit log
        </Link>
      )}
    </Panel>
  )
}

function By({ entry }: { entry: { actorKind: string; actorName: string | null } | undefined }) {
  if (!entry) return null
  return (
    <>
      {' '}
      by <Visible text={authorOf(entry.actorKind, entry.actorName)} />
    </>
  )
}
