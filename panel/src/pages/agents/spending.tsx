// An agent's spending, the limits that currently block its model, and refused connections.
import { useState } from 'react'
import { graphql, type ResultOf } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import { AllowHostDialog } from '../../app/spending/allow-host'
import { AllowMore } from '../../app/spending/allow-more'
import { hostAndPort } from '../../app/spending/host'
import { SpentThisMonth } from '../../app/spending/spent'
import { Gate } from '../../permissions/gate'
import { Button } from '../../ui/button'
import { Meter } from '../../ui/meter'
import { Notice } from '../../ui/notice'
import { Panel } from '../../ui/panel'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'

const SpendingQuery = graphql(`
  query AgentSpending($orgId: Id!, $id: Id!) {
    agent(orgId: $orgId, id: $id) {
      id name monthlyBudgetMicro
      limit { kind reason since until }
      spending { costMicro allowedMicro leasedMicro tokens hourTokens hourLimit }
      refusedDestinations { host port count lastAt reason }
    }
  }
`)

type Found = NonNullable<ResultOf<typeof SpendingQuery>['agent']>

export function Spending({ agentId }: { agentId: number }) {
  const { id: orgId } = useOrg()
  const { data, refetch } = useLive({
    query: SpendingQuery,
    variables: { orgId, id: agentId },
    on: ({ kind, id }) =>
      (kind === 'AGENT' && id === agentId) ||
      kind === 'TURN' ||
      kind === 'ORGANIZATION' ||
      kind === 'APPROVAL',
  })
  const agent = data?.agent
  if (!agent) return null
  return (
    <>
      <Spent agent={agent} onAllowed={refetch} />
      <Refused agent={agent} onAllowed={refetch} />
    </>
  )
}

interface PartProps {
  agent: Found
  onAllowed: () => void
}

function Spent({ agent, onAllowed }: PartProps) {
  const [allowing, allow] = useState<'money' | 'tokens' | null>(null)
  const { spending, monthlyBudgetMicro: budget, limit } = agent
  if (!spending) return null
  const { hourTokens, hourLimit } = spending
  // Without its own budget, the agent is limited by the organization's.
  const whose = allowing === 'money' && budget === null ? undefined : { id: agent.id, name: agent.name }
  return (
    <Panel title="Spending">
      <div className="space-y-3 rounded-card border border-line p-4">
        {limit && <Limit limit={limit} />}
        <SpentThisMonth spending={spending} budget={budget} agentId={agent.id} />
        <TokensOfTheHour used={hourTokens} most={hourLimit} />
        <Gate may="organization.edit">
          <div className="flex flex-wrap gap-2">
            {(budget !== null || limit?.kind === 'MONEY') && (
              <Button size="sm" onClick={() => allow('money')}>
                Allow more this month
              </Button>
            )}
            {hourLimit !== null && (
              <Button size="sm" onClick={() => allow('tokens')}>
                Allow more this hour
              </Button>
            )}
          </div>
        </Gate>
      </div>
      {allowing && <AllowMore kind={allowing} agent={whose} onClose={() => allow(null)} onDone={onAllowed} />}
    </Panel>
  )
}

function Limit({ limit: { reason, since, until } }: { limit: NonNullable<Found['limit']> }) {
  return (
    <Notice tone="warn">
      <Visible text={reason} /> Its turns wait since <Time at={since} as="stamp" />
      {until ? (
        <>
          , and go on by themselves: <Time at={until} as="stamp" />.
        </>
      ) : (
        ', until more is allowed.'
      )}
    </Notice>
  )
}

function TokensOfTheHour({ used, most }: { used: number; most: number | null }) {
  const tokens = used.toLocaleString()
  if (most === null)
    return <p className="text-sm text-muted tabular-nums">{tokens} measured tokens in the last hour</p>
  const text = `${tokens} of ${most.toLocaleString()} measured tokens in the last hour`
  return (
    <div className="space-y-1.5">
      <p className="tabular-nums">{text}</p>
      <Meter label="Tokens of the last hour" value={used} most={most} text={text} />
    </div>
  )
}

/** The latest ones; the answer has more. */
const SHOWN = 10

function Refused({ agent, onAllowed }: PartProps) {
  const [asking, ask] = useState<{ host: string; port: number } | null>(null)
  const [all, showAll] = useState(false)
  const refused = agent.refusedDestinations
  if (refused.length === 0) return null
  return (
    <Panel
      title="Refused hosts"
      doc="approvals.md#what-is-asked"
      about="Hosts it tried to reach without permission."
    >
      <ul className="divide-y divide-line rounded-card border border-line">
        {refused.slice(0, all ? undefined : SHOWN).map(({ host, port, count, lastAt, reason }) => (
          <li key={`${host}:${port}`} className="px-4 py-2.5">
            <p className="flex flex-wrap items-center gap-x-2 gap-y-1">
              <span className="min-w-0 grow font-medium break-all">
                <Visible text={hostAndPort(host, port)} />
              </span>
              <Gate may="network.edit">
                <Button size="sm" onClick={() => ask({ host, port })}>
                  Allow this host
                </Button>
              </Gate>
            </p>
            <p className="text-sm text-muted">
              <Visible text={reason} /> {count === 1 ? 'Once' : `${count.toLocaleString()} times`}, last{' '}
              <Time at={lastAt} />
            </p>
          </li>
        ))}
      </ul>
      {!all && refused.length > SHOWN && (
        <Button size="sm" look="quiet" onClick={() => showAll(true)}>
          Show all {refused.length}
        </Button>
      )}
      {asking && <AllowHostDialog {...asking} onClose={() => ask(null)} onDone={onAllowed} />}
    </Panel>
  )
}
