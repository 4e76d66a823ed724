// The decisions an agent is waiting for. They are made in the inbox.
import { Link } from '@tanstack/react-router'
import { graphql } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { levelOf } from '../../app/approvals/level'
import { useOrg } from '../../app/organization'
import { Panel } from '../../ui/panel'
import { Status } from '../../ui/status'
import { Countdown } from '../../ui/time'
import { Visible } from '../../ui/visible'

const PendingQuery = graphql(`
  query AgentApprovals($orgId: Id!, $agentId: Id!) {
    approvalFeed(orgId: $orgId, agentId: $agentId, status: [PENDING], sort: RISK, limit: 5) {
      data { id title severity risk expiresAt }
    }
  }
`)

export function PendingApprovals({ agentId, total }: { agentId: number; total: number }) {
  const { id: org } = useOrg()
  const { data } = useLive({
    query: PendingQuery,
    variables: { orgId: org, agentId },
    on: ['APPROVAL'],
  })
  const approvals = data?.approvalFeed?.data ?? []
  if (approvals.length === 0) return null
  return (
    <Panel
      title="Pending approvals"
      actions={
        <Link
          to="/o/$org/approvals"
          params={{ org }}
          search={{ tab: 'all', agent: agentId }}
          className="link text-sm"
        >
          {total > 1 ? `Decide all ${total.toLocaleString()} in Approvals` : 'Decide in Approvals'}
        </Link>
      }
    >
      <ul className="divide-y divide-line overflow-hidden rounded-card border border-line">
        {approvals.map(({ id, title, severity, risk, expiresAt }) => (
          <li key={id}>
            <Link
              to="/o/$org/approvals/$id"
              params={{ org, id }}
              className="flex flex-wrap items-center gap-x-3 gap-y-1 px-3 py-2 hover:bg-hover"
            >
              <span className="min-w-0 grow truncate font-medium">
                <Visible text={title} />
              </span>
              {expiresAt && (
                <span className="text-sm text-muted">
                  <Countdown to={expiresAt} before="expires in " over="expired" />
                </span>
              )}
              <Status of="severity" value={levelOf({ risk, severity })} />
            </Link>
          </li>
        ))}
      </ul>
    </Panel>
  )
}
