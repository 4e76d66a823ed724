// Facts about an agent: its server, image, model and mode, and its usage.
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useOrg } from '../../app/organization'
import { moneyOf } from '../../app/spending/money'
import { Badge } from '../../ui/badge'
import { Fact, Facts, Panel } from '../../ui/panel'
import { Status, words } from '../../ui/status'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import type { AgentRecord } from './agent-page'

export function AgentFacts({ agent }: { agent: AgentRecord }) {
  const org = useOrg()
  const { server, image } = agent
  return (
    <Panel title="Facts">
      <Facts>
        <Fact name="Server">
          {server && (
            <span className="flex flex-wrap items-center gap-2">
              <Link
                to="/o/$org/servers/$id"
                params={{ org: org.id, id: server.id }}
                className="link truncate"
              >
                <Visible text={server.name} />
              </Link>
              {server.status !== 'ONLINE' && <Status of="server" value={server.status} />}
            </span>
          )}
        </Fact>
        <Fact name="Image">
          {image && (
            <Link
              to="/o/$org/agents"
              params={{ org: org.id }}
              search={{ tab: 'images', peek: image.id }}
              className="link break-words"
              data-tip={image.reference}
            >
              <Visible text={image.name} />
            </Link>
          )}
        </Fact>
        <Fact name="Model">
          <Model agent={agent} />
        </Fact>
        {agent.modeOverride && (
          <Fact name="Mode">
            <Mode agent={agent} mode={agent.modeOverride} />
          </Fact>
        )}
        {agent.offeredModes && agent.offeredModes.length > 0 && (
          <Fact name="Modes">
            <span className="flex flex-wrap gap-1">
              {agent.offeredModes.map(({ id, name, description, current }) => (
                <Badge key={id} tone={current ? 'accent' : 'plain'} tip={description ?? undefined}>
                  {current ? `${name}, in use` : name}
                </Badge>
              ))}
            </span>
          </Fact>
        )}
        {agent.networkPrivileged && (
          <Fact name="Network">
            <Badge
              tone="warn"
              tip="The agent reaches every host that its server reaches, past the list of allowed hosts."
            >
              Unrestricted
            </Badge>
          </Fact>
        )}
        <Fact name="Channels">
          <Channels agent={agent} />
        </Fact>
        <Fact name="Tokens, all time">
          <Tokens used={agent.tokensUsed} />
        </Fact>
        <Fact name="Cost, all time">
          <Cost micro={agent.costMicro} tokens={agent.tokensUsed} />
        </Fact>
        <Fact name="Last activity">
          <Time at={agent.lastActivityAt} none="none yet" />
        </Fact>
        <Fact name="Revision">
          <Link to="." search={{ tab: 'revisions' }} className="link">
            {agent.revision || 'none yet'}
          </Link>
          {Boolean(agent.launchedRevision) && agent.launchedRevision !== agent.revision && (
            <span className="text-muted">, started with {agent.launchedRevision}</span>
          )}
        </Fact>
      </Facts>
      {agent.description && <p className="mt-3 text-muted whitespace-pre-line">{agent.description}</p>}
    </Panel>
  )
}

function Model({ agent: { runningModel, resolvedModel, modelOverride } }: { agent: AgentRecord }) {
  const shown = runningModel ?? resolvedModel
  if (!shown) return <Unknown why="No model set: the program’s default applies." />
  return (
    <span className="break-words">
      <Visible text={shown} />
      {runningModel && resolvedModel && runningModel !== resolvedModel && (
        <span className="block text-sm text-muted">
          from the next start: <Visible text={resolvedModel} />
        </span>
      )}
      {!modelOverride && <span className="block text-sm text-muted">as the image says</span>}
    </span>
  )
}

function Mode({ agent: { offeredModes, modeProblem }, mode }: { agent: AgentRecord; mode: string }) {
  const offered = offeredModes?.find(({ id }) => id === mode)
  return (
    <span className="break-words">
      <Visible text={offered?.name ?? mode} />
      {modeProblem && <span className="block text-sm text-warn-text">{modeProblem}</span>}
    </span>
  )
}

function Channels({ agent }: { agent: AgentRecord }) {
  const org = useOrg()
  if (agent.channels.length === 0) {
    return (
      <Link to="/o/$org/channels" params={{ org: org.id }} className="link">
        None yet: people write in the panel
      </Link>
    )
  }
  return (
    <ul>
      {agent.channels.map(({ id, name, transport }) => (
        <li key={id} className="flex flex-wrap gap-x-2">
          <Link to="/o/$org/channels" params={{ org: org.id }} search={{ peek: id }} className="link">
            <Visible text={name} />
          </Link>
          <span className="text-muted">{words(transport)}</span>
        </li>
      ))}
    </ul>
  )
}

export function Tokens({ used }: { used: string }) {
  const count = Number(used)
  return count > 0 ? (
    <span className="tabular-nums">{count.toLocaleString()}</span>
  ) : (
    <Unknown why="None used or none reported" />
  )
}

/** No cost means unknown: only some agents report it. */
function Cost({ micro, tokens }: { micro: string; tokens: string }) {
  const { currency } = useOrg()
  if (Number(micro) > 0) return <span className="tabular-nums">{moneyOf(micro, currency)}</span>
  return <Unknown why={Number(tokens) > 0 ? 'The agent does not report its cost.' : 'No turns yet'} />
}

/** An unknown value and the reason. */
export function Unknown({ why }: { why: ReactNode }) {
  return <span className="text-sm text-muted">{why}</span>
}
