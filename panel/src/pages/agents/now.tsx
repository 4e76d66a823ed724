// An agent's present: its state with the next step, pending items, and its access.
import { Link } from '@tanstack/react-router'
import { RefreshCw } from 'lucide-react'
import type { ReactNode } from 'react'
import { conversationTitle } from '../../app/conversation-title'
import { useOrg } from '../../app/organization'
import { useRefused } from '../../permissions/gate'
import { ActionButton } from '../../ui/actions'
import { CodeBlock } from '../../ui/code'
import { Panel } from '../../ui/panel'
import { Status } from '../../ui/status'
import { Duration, Time } from '../../ui/time'
import { Access } from './access'
import type { AgentRecord } from './agent-page'
import { AgentConversations } from './conversations'
import { AgentFacts } from './facts'
import { PendingApprovals } from './pending'
import type { Run } from './run'
import { Spending } from './spending'
import { detailOf, stateInWords } from './words'

export function Now({ agent, run }: { agent: AgentRecord; run: Run }) {
  return (
    <div className="grid w-full max-w-6xl gap-x-8 px-4 py-6 sm:px-6 lg:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]">
      <div className="min-w-0">
        <State agent={agent} run={run} />
        <PendingApprovals agentId={agent.id} total={agent.pendingApprovals} />
        <AgentConversations agent={agent} />
      </div>
      <div className="min-w-0">
        <AgentFacts agent={agent} />
        <Spending agentId={agent.id} />
        <Access agent={agent} />
      </div>
    </div>
  )
}

function State({ agent, run }: { agent: AgentRecord; run: Run }) {
  const org = useOrg()
  const stays = run.status === agent.status
  const { what, todo } = stateInWords(run.status, stays ? agent.statusReason : null)
  const failed = run.status === 'ERROR'
  const { exit, more } = detailOf(stays ? agent.statusDetail : null)
  return (
    <Panel title="State">
      <div className="rounded-card border border-line p-4">
        <p className="flex flex-wrap items-center gap-x-2.5 gap-y-1">
          <Status of="agent" value={run.status} />
          <span className="font-medium">{what}</span>
          {exit && <span className="text-sm text-muted">{exit}</span>}
          {agent.uptimeSeconds !== null && run.status === 'RUNNING' && (
            <span className="text-sm text-muted">
              Up for <Duration from={new Date(Date.now() - agent.uptimeSeconds * 1000).toISOString()} />
            </span>
          )}
        </p>
        {todo && <p className="mt-1.5 text-muted">{todo}</p>}
        {more && more !== what && (
          <>
            <p className="mt-3 mb-1 text-sm text-muted">{exit ? 'Last output' : 'Cause'}</p>
            <CodeBlock text={more} label={exit ? 'the last output' : 'the cause'} maxHeight="sm" />
          </>
        )}
        {stays && failed && <ComesBack agent={agent} run={run} />}
        {failed && (
          <p className="mt-2 text-sm">
            <Link to="." search={{ tab: 'launches' }} className="link">
              Restart history
            </Link>
          </p>
        )}
        {agent.runningTurns.length > 0 && (
          <ul className="mt-3 space-y-1 text-sm text-muted">
            {agent.runningTurns.map((turn) => (
              <li key={turn.id} className="flex flex-wrap items-center gap-2">
                <Status of="turn" value={turn.state} />
                <Link
                  to="/o/$org/conversations/$id"
                  params={{ org: org.id, id: turn.conversationId }}
                  className="link"
                >
                  {turn.conversation
                    ? conversationTitle(turn.conversation)
                    : `Conversation ${turn.conversationId}`}
                </Link>
                <Duration from={turn.startedAt} whole />
                {turn.state === 'WAITING_LIMIT' && agent.limit?.until && (
                  <span>
                    goes on <Time at={agent.limit.until} as="stamp" />
                  </span>
                )}
              </li>
            ))}
          </ul>
        )}
        <Pending agent={agent} run={run} />
      </div>
    </Panel>
  )
}

/** The time of the automatic restart, and how to prevent it. */
function ComesBack({ agent, run }: { agent: AgentRecord; run: Run }) {
  const refused = useRefused('agent.edit', agent)
  const restart = agent.restart
  if (!restart) return null
  if (!restart.nextAt) {
    return restart.attempts > 0 ? (
      <p className="mt-2 text-sm text-muted">
        The agent was restarted {restart.attempts} times in a row, and now stays down until someone starts it.
      </p>
    ) : null
  }
  const stay = {
    id: 'agent.stay-down',
    label: 'Don’t start the agent again',
    group: 'Agent',
    refused,
    run: () => run.step('stop'),
  }
  return (
    <Line
      action={
        <ActionButton size="sm" busy={run.busy} action={stay}>
          Don’t restart
        </ActionButton>
      }
    >
      The next restart is <Time at={restart.nextAt} />
      {restart.attempts > 0 && `, attempt ${restart.attempts + 1}`}.
    </Line>
  )
}

/** Changes that have not reached the running agent. */
function Pending({ agent, run }: { agent: AgentRecord; run: Run }) {
  const refused = useRefused('agent.edit', agent)
  if (agent.restartPending) {
    const restart = {
      id: 'agent.restart',
      label: 'Restart the agent',
      group: 'Agent',
      refused,
      run: () => run.step('restart'),
    }
    return (
      <Line
        action={
          <ActionButton size="sm" icon={RefreshCw} busy={run.busy} action={restart}>
            Restart
          </ActionButton>
        }
      >
        {agent.restartReason ?? 'Some changes are not applied yet.'} Restart to apply.
      </Line>
    )
  }
  if (agent.syncPending) return <Line>A change is on its way to the server.</Line>
  return agent.lastActionAt ? (
    <p className="mt-3 text-xs text-faint">
      State changed <Time at={agent.lastActionAt} />
    </p>
  ) : null
}

function Line({ action, children }: { action?: ReactNode; children: ReactNode }) {
  return (
    <div className="mt-3 flex flex-wrap items-center gap-2 rounded-control bg-info-soft px-3 py-2 text-sm text-info-text">
      <span className="min-w-0 grow">{children}</span>
      {action}
    </div>
  )
}
