// Says that the agent of a conversation does not run, and starts it.
import { Link } from '@tanstack/react-router'
import { Play, TriangleAlert } from 'lucide-react'
import { graphql } from '../../../api/graphql'
import { useAct } from '../../../api/use-act'
import { stateInWords } from '../../../app/agent-state'
import { useOrg } from '../../../app/organization'
import { useRefused } from '../../../permissions/gate'
import { ActionButton } from '../../../ui/actions'
import { Time } from '../../../ui/time'
import { Visible } from '../../../ui/visible'
import type { ConversationRecord } from '../record'

const StartAgent = graphql(`
  mutation StartAgentHere($orgId: Id!, $id: Id!) {
    startAgent(orgId: $orgId, id: $id) { id status statusReason restart { nextAt } }
  }
`)

export function AgentDown({ conversation }: { conversation: ConversationRecord }) {
  const org = useOrg()
  const start = useAct(StartAgent)
  const { agent, agentDetails } = conversation
  const refused = useRefused('agent.edit', agentDetails)
  const isDown = agentDetails?.status === 'ERROR' || agentDetails?.status === 'STOPPED'
  // A stopped organization has its own banner. While a person answers, the agent’s state does not matter.
  if (!agent || !isDown || org.stopped || conversation.takenOverBy !== null) return null
  const hasFailed = agentDetails.status === 'ERROR'
  const nextAt = agentDetails.restart?.nextAt
  return (
    <div
      role="status"
      className="flex shrink-0 flex-wrap items-center gap-x-3 gap-y-1.5 border-b border-line bg-warn-soft px-4 py-2 text-warn-text sm:px-6"
    >
      <TriangleAlert size={15} aria-hidden className="shrink-0" />
      <p className="min-w-0 grow">
        <Link
          to="/o/$org/agents/$id"
          params={{ org: org.id, id: agent.id }}
          className="font-semibold underline"
        >
          <Visible text={agent.name} />
        </Link>{' '}
        {hasFailed ? 'has failed' : 'is stopped'}.{' '}
        {agentDetails.statusReason && stateInWords('ERROR', agentDetails.statusReason).what}{' '}
        {nextAt ? (
          <>
            The next start is <Time at={nextAt} />.
          </>
        ) : (
          'New messages wait until the agent is started.'
        )}
      </p>
      <ActionButton
        size="sm"
        icon={Play}
        busy={start.pending}
        action={{
          id: 'conversation.start-agent',
          label: 'Start the agent',
          group: 'Conversation',
          refused,
          run: () => void start({ orgId: org.id, id: agent.id }),
        }}
      >
        Start
      </ActionButton>
    </div>
  )
}
