// The agents on a server.
import { Link } from '@tanstack/react-router'
import { Play } from 'lucide-react'
import { useState } from 'react'
import { graphql, type ResultOf } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useOrg } from '../../app/organization'
import { useRefused } from '../../permissions/gate'
import { ActionButton } from '../../ui/actions'
import { Avatar } from '../../ui/avatar'
import { Notice } from '../../ui/notice'
import { Panel } from '../../ui/panel'
import { Status } from '../../ui/status'
import { Visible } from '../../ui/visible'
import type { ServerRecord } from './server-page'

const FIRST = 20

const StartAll = graphql(`
  mutation StartAgents($orgId: Id!, $serverId: Id!) {
    startAgents(orgId: $orgId, serverId: $serverId) { started skipped { id name status reason } left }
  }
`)

type Started = NonNullable<ResultOf<typeof StartAll>['startAgents']>

export function Agents({ server }: { server: ServerRecord }) {
  const { id: org } = useOrg()
  const { agents } = server
  const start = useAct(StartAll)
  const [done, setDone] = useState<Started | null>(null)
  const startAll = {
    id: 'server.start-agents',
    label: 'Start all agents of the server',
    group: 'Server',
    refused: useRefused('agent.edit'),
    run: async () => {
      const { data } = await start({ orgId: org, serverId: server.id })
      setDone(data?.startAgents ?? null)
    },
  }
  return (
    <Panel
      title="Agents"
      about={agents.length > 0 ? `${server.agentsRunning} of ${server.agentCount} run` : undefined}
      actions={
        <>
          {agents.length > FIRST && (
            <Link
              to="/o/$org/agents"
              params={{ org }}
              search={{ server: server.id }}
              className="link text-sm"
            >
              All {agents.length}
            </Link>
          )}
          {agents.some(({ status }) => status === 'STOPPED' || status === 'ERROR') && (
            <ActionButton size="sm" icon={Play} busy={start.pending} action={startAll}>
              Start all
            </ActionButton>
          )}
        </>
      }
    >
      {done && <Done done={done} />}
      {agents.length === 0 ? (
        <p className="rounded-card border border-dashed border-line px-4 py-6 text-center text-muted">
          No agent runs here.{' '}
          <Link to="/o/$org/agents" params={{ org }} search={{ open: 'new' }} className="link">
            Make one
          </Link>
          .
        </p>
      ) : (
        <ul className="divide-y divide-line overflow-hidden rounded-card border border-line">
          {agents.slice(0, FIRST).map(({ id, name, role, avatarUrl, status }) => (
            <li key={id}>
              <Link
                to="/o/$org/agents/$id"
                params={{ org, id }}
                className="flex items-center gap-3 px-3 py-2 hover:bg-hover"
              >
                <Avatar name={name} url={avatarUrl} square />
                <span className="min-w-0 grow">
                  <span className="block truncate font-medium">
                    <Visible text={name} />
                  </span>
                  {role && <span className="block truncate text-sm text-muted">{role}</span>}
                </span>
                <Status of="agent" value={status} />
              </Link>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  )
}

/** The outcome. Agents that were already running are not mentioned. */
function Done({ done }: { done: Started }) {
  const skipped = done.skipped.filter(({ status }) => status === 'STOPPED' || status === 'ERROR')
  if (skipped.length === 0 && done.left === 0) return null
  return (
    <Notice tone="warn">
      {skipped.map(({ id, name, reason }) => (
        <p key={id}>
          <Visible text={name} /> was not started: {reason}
        </p>
      ))}
      {done.left > 0 && <p>{done.left} agents were not looked at. Start all again.</p>}
    </Notice>
  )
}
