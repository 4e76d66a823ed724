// The agent's current activity, and how to stop it.
import { Link } from '@tanstack/react-router'
import { Square } from 'lucide-react'
import { useState } from 'react'
import { graphql } from '../../../api/graphql'
import { useAct } from '../../../api/use-act'
import { endsInWords } from '../../../app/cut-words'
import { useOrg } from '../../../app/organization'
import { useRefused } from '../../../permissions/gate'
import { ActionButton } from '../../../ui/actions'
import { ConfirmDialog } from '../../../ui/confirm'
import { Status } from '../../../ui/status'
import { Duration } from '../../../ui/time'
import type { ConversationRecord } from '../record'

const CancelTurn = graphql(`
  mutation CancelTurn($orgId: Id!, $id: Id!) { cancelTurn(orgId: $orgId, id: $id) { id state cancelRequestedAt } }
`)

const RESTS: Record<string, string> = {
  STOPPED: 'the agent is stopped',
  STOPPING: 'the agent is stopping',
  SPAWNING: 'the agent is starting',
  PAUSED: 'the agent is paused',
  ERROR: 'the agent has failed',
}

const NO_SERVER = 'the agent’s server is not connected'

function restOf({
  status,
  statusReason,
}: NonNullable<ConversationRecord['agentDetails']>): string | undefined {
  const isAway = statusReason === 'HOST_AWAY' || statusReason === 'WAITING_FOR_HOST'
  return isAway ? NO_SERVER : RESTS[status]
}

export function WorkLine({ conversation }: { conversation: ConversationRecord }) {
  const org = useOrg()
  const act = useAct(CancelTurn)
  const [asking, ask] = useState(false)
  const { openTurns, agentDetails, pendingApprovals } = conversation
  const refused = useRefused('agent.interact', conversation)
  const turn = openTurns.find(({ state }) => state !== 'QUEUED') ?? openTurns[0]
  if (!turn) return null
  const tell = async () => {
    await act({ orgId: org.id, id: turn.id }, { said: 'Told the agent to stop' })
    ask(false)
  }
  const stop = {
    id: 'conversation.stop',
    label: 'Tell the agent to stop',
    group: 'Conversation',
    also: 'cancel turn',
    refused,
    run: () => (turn.state === 'WAITING_APPROVAL' ? ask(true) : void tell()),
  }
  const queued = openTurns.filter(({ state }) => state === 'QUEUED').length
  const rest = org.stopped ? 'all agents are on hold' : agentDetails && restOf(agentDetails)
  return (
    <div
      role="status"
      className="flex shrink-0 flex-wrap items-center gap-x-2.5 gap-y-1 border-t border-line bg-sunken px-4 py-1.5 text-sm text-muted sm:px-6"
    >
      <Status of="turn" value={turn.state} />
      <span className="min-w-0 grow basis-24">
        {turn.state === 'QUEUED' ? (
          rest ? (
            `This turn waits: ${rest}.`
          ) : (
            'This turn begins in a moment.'
          )
        ) : turn.state === 'WAITING_APPROVAL' ? (
          <Link
            to="/o/$org/approvals"
            params={{ org: org.id }}
            search={{ tab: 'all', conversation: conversation.id }}
            className="text-accent-text hover:underline"
          >
            {pendingApprovals === 1 ? 'One decision' : `${pendingApprovals} decisions`} needed
          </Link>
        ) : (
          <>
            for{' '}
            <span aria-hidden>
              <Duration whole from={turn.startedAt ?? turn.createdAt} />
            </span>
          </>
        )}
        {queued > 0 && turn.state !== 'QUEUED' && '; your messages are sent afterwards'}
      </span>
      <ActionButton size="sm" icon={Square} busy={act.pending} action={stop}>
        Stop
      </ActionButton>
      <ConfirmDialog
        open={asking}
        onClose={() => ask(false)}
        title="Tell the agent to stop?"
        action="Stop"
        busy={act.pending}
        onConfirm={tell}
      >
        This {endsInWords(1, pendingApprovals)}. The approvals and this conversation say that it was you.
      </ConfirmDialog>
    </div>
  )
}
