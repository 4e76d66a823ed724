// What runs on a server.
import { Link } from '@tanstack/react-router'
import { useOrg } from '../../app/organization'
import { Avatar } from '../../ui/avatar'
import { Panel } from '../../ui/page'
import { Status } from '../../ui/status'
import { Visible } from '../../ui/visible'
import type { ServerRecord } from './server-page'

const FIRST = 20

export function Agents({ server }: { server: ServerRecord }) {
  const { id: org } = useOrg()
  const { agents } = server
  return (
    <Panel
      title="Agents"
      about={agents.length > 0 ? `${server.agentsRunning} of ${server.agentCount} run` : undefined}
      actions={
        agents.length > FIRST && (
          <Link to="/o/$org/agents" params={{ org }} search={{ server: server.id }} className="link text-sm">
            All {agents.length}
          </Link>
        )
      }
    >
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
