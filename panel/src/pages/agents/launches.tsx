// An agent's latest launches: how each went, why it ended, and the last output of its program.
import { Rocket } from 'lucide-react'
import { graphql, type ResultOf } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { authorOf } from '../../app/author'
import { useOrg } from '../../app/organization'
import { Badge } from '../../ui/badge'
import { CodeBlock } from '../../ui/code'
import { Empty } from '../../ui/empty'
import { useNow } from '../../ui/now'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { Duration, Time } from '../../ui/time'
import { shareInWords, uptimeOf } from './uptime'
import { detailOf, stateInWords } from './words'

const LaunchesQuery = graphql(`
  query AgentLaunches($orgId: Id!, $agentId: Id!) {
    agentLaunches(orgId: $orgId, agentId: $agentId, limit: 50) {
      generation revision startedAt upAt endedAt reason detail startedByKind startedByName
    }
  }
`)

type Launch = NonNullable<ResultOf<typeof LaunchesQuery>['agentLaunches']>[number]

export function Launches({ agentId }: { agentId: number }) {
  const { id: orgId } = useOrg()
  const { data, error, loading, refetch } = useLive({
    query: LaunchesQuery,
    variables: { orgId, agentId },
    on: ({ kind, id }) => kind === 'AGENT' && id === agentId,
  })
  const launches = data?.agentLaunches
  if (error && !launches) return <ProblemView error={error} retry={refetch} />
  if (loading || !launches) return <ListSkeleton />
  if (launches.length === 0) {
    return (
      <Empty
        icon={Rocket}
        title="Never started"
        command={`curl -X POST -H "Authorization: Bearer $TOKEN" \\\n  ${location.origin}/v1/org/${orgId}/agent/${agentId}/start`}
      >
        Start the agent at the top of this page. This list then shows each start: by whom, how long the agent
        was up, and why it ended.
      </Empty>
    )
  }
  return (
    <>
      <Uptime launches={launches} />
      <ol className="divide-y divide-line rounded-card border border-line">
        {launches.map((launch) => (
          <li key={launch.generation} className="px-4 py-3">
            <Line launch={launch} />
          </li>
        ))}
      </ol>
    </>
  )
}

function Uptime({ launches }: { launches: Launch[] }) {
  const uptime = uptimeOf(launches, useNow(60_000))
  if (!uptime) return null
  const { since, isWhole, share, restarts } = uptime
  return (
    <p className="mb-3 text-sm text-muted tabular-nums">
      Up for {shareInWords(share)} of{' '}
      {isWhole ? (
        'the last 30 days'
      ) : (
        <>
          the time since <Time at={since} as="stamp" />
        </>
      )}
      , with {restarts === 1 ? '1 restart' : `${restarts} restarts`}
    </p>
  )
}

function Line({ launch }: { launch: Launch }) {
  const { generation, revision, startedAt, upAt, endedAt, reason, detail } = launch
  const { exit, more } = detailOf(detail)
  const why = reason ? stateInWords('ERROR', reason) : null
  return (
    <>
      <p className="flex flex-wrap items-center gap-x-2.5 gap-y-1">
        <span className="font-medium">Start {generation}</span>
        {!endedAt && upAt && <Badge tone="ok">Up</Badge>}
        {!endedAt && !upAt && <Badge tone="info">Starting</Badge>}
        {endedAt && reason && <Badge tone="danger">Failed</Badge>}
        {endedAt && !reason && <Badge>Stopped</Badge>}
        <span className="text-sm text-muted">
          <Time at={startedAt} /> by {authorOf(launch.startedByKind, launch.startedByName)}
          {revision > 0 && `, with revision ${revision}`}
          {upAt && (
            <>
              , up for <Duration from={upAt} to={endedAt} />
            </>
          )}
          {!upAt && endedAt && ', never up'}
          {exit && `, ${exit.toLowerCase()}`}
        </span>
      </p>
      {why && (
        <p className="mt-1">
          {why.what} <span className="text-muted">{why.todo}</span>
        </p>
      )}
      {more && (
        <CodeBlock className="mt-2" text={more} label={`how start ${generation} ended`} maxHeight="sm" />
      )}
    </>
  )
}
