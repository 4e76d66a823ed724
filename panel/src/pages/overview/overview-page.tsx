// The overview: what needs a person now, most urgent first. Everything links to where it is handled.
import { OctagonX } from 'lucide-react'
import { graphql } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { lazyPart } from '../../app/lazy-page'
import { useOrg } from '../../app/organization'
import { useStop } from '../../app/stop-store'
import { Gate } from '../../permissions/gate'
import { Button } from '../../ui/button'
import { PageBody, PageHeader } from '../../ui/page'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { AttentionAgent, AttentionApproval, AttentionConversation } from './attention'

// Loads in parallel with its data.
const Attention = lazyPart(() => import('./lines'), 'Attention')
void Attention.preload()

const OverviewQuery = graphql(
  `
  query Overview($orgId: Id!) {
    overview(orgId: $orgId) {
      pendingApprovals { total mine nextExpiresAt bySeverity { severity count } }
      agents { status count }
      servers { total offline pending }
      channelsInactive
      openConversations
      unreadConversations
      undeliveredConversations
    }
    approvalFeed(orgId: $orgId, status: [PENDING], snoozed: false, sort: RISK, limit: 6) {
      data { id ...AttentionApproval }
    }
    agentFeed(orgId: $orgId, status: [ERROR], sort: ACTIVITY, limit: 6) {
      data { id ...AttentionAgent }
    }
    conversationFeed(orgId: $orgId, unread: true, status: [OPEN, PENDING], limit: 6) {
      data { id ...AttentionConversation }
    }
  }
`,
  [AttentionApproval, AttentionAgent, AttentionConversation],
)

export function OverviewPage() {
  const org = useOrg()
  const stop = useStop()
  const { data, error, loading, refetch } = useLive({
    query: OverviewQuery,
    variables: { orgId: org.id },
    on: ['APPROVAL', 'AGENT', 'CONVERSATION', 'SERVER', 'CHANNEL'],
  })
  const overview = data?.overview
  return (
    <>
      <PageHeader
        title="Overview"
        doc="panel.md#pages"
        actions={
          !org.stopped && (
            <Gate may="organization.stop">
              <Button icon={OctagonX} onClick={stop} tip="Stops all agents of the organization at once">
                Stop all agents
              </Button>
            </Gate>
          )
        }
      />
      <PageBody>
        <div className="w-full max-w-4xl px-4 py-6 sm:px-6">
          {loading && <ListSkeleton />}
          {!overview && error && <ProblemView error={error} retry={refetch} />}
          {overview && (
            <Attention
              overview={overview}
              approvals={data.approvalFeed?.data ?? []}
              failed={data.agentFeed?.data ?? []}
              unread={data.conversationFeed?.data ?? []}
            />
          )}
        </div>
      </PageBody>
    </>
  )
}
