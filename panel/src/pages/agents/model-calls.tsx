// A turn's model calls in order, and what it is waiting for.
import { graphql, type ResultOf } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import { costOf } from '../../app/spending/money'
import { Badge } from '../../ui/badge'
import { Notice } from '../../ui/notice'
import { Panel } from '../../ui/panel'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { Time } from '../../ui/time'
import { duration } from '../../ui/time-format'
import { Visible } from '../../ui/visible'

const CallsQuery = graphql(`
  query TurnModelCalls($orgId: Id!, $id: Id!) {
    turn(orgId: $orgId, id: $id) {
      id state
      agent { id limit { kind reason since until } }
      modelCalls {
        id startedAt millis provider model status
        inputTokens outputTokens cacheReadTokens cacheWriteTokens costMicro
      }
    }
  }
`)

type Call = NonNullable<ResultOf<typeof CallsQuery>['turn']>['modelCalls'][number]

export function ModelCalls({ turnId }: { turnId: number }) {
  const { id: orgId } = useOrg()
  const { data, error, loading, refetch } = useLive({
    query: CallsQuery,
    variables: { orgId, id: turnId },
    on: ({ kind, id }) => (kind === 'TURN' && id === turnId) || kind === 'AGENT',
  })
  const turn = data?.turn
  if (error && !turn) return <ProblemView error={error} retry={refetch} />
  if (loading || !turn) return <ListSkeleton />
  const limit = turn.state === 'WAITING_LIMIT' ? turn.agent?.limit : null
  return (
    <div className="mt-6">
      {limit && (
        <div className="mb-4">
          <Notice tone="warn">
            <Visible text={limit.reason} />{' '}
            {limit.until ? (
              <>
                It waits until <Time at={limit.until} as="stamp" />.
              </>
            ) : (
              'It waits until more is allowed.'
            )}
          </Notice>
        </div>
      )}
      <Panel title="Model calls" about="Measured by its server. Kept for 90 days.">
        {turn.modelCalls.length === 0 ? (
          <p className="text-muted">Its server has seen no model call in this turn.</p>
        ) : (
          <ol className="divide-y divide-line rounded-card border border-line">
            {turn.modelCalls.map((call) => (
              <li key={call.id} className="px-3 py-2">
                <Line call={call} />
              </li>
            ))}
          </ol>
        )}
      </Panel>
    </div>
  )
}

function Line({ call }: { call: Call }) {
  const { currency } = useOrg()
  const { startedAt, millis, model, provider, status, costMicro } = call
  return (
    <>
      <p className="flex flex-wrap items-center gap-x-2 gap-y-0.5">
        <span className="min-w-0 grow font-medium break-words" data-tip={provider}>
          <Visible text={model} />
        </span>
        <Outcome status={status} />
      </p>
      <p className="text-sm text-muted tabular-nums">
        <Time at={startedAt} as="stamp" />, {duration(millis)},{' '}
        {costOf(costMicro, currency) ?? 'cost unknown: no price'}
      </p>
      <p className="text-sm text-muted tabular-nums">{tokensOf(call)}</p>
    </>
  )
}

function Outcome({ status }: { status: number | null }) {
  if (status === null) return <Badge tone="warn">No answer</Badge>
  if (status === 429) return <Badge tone="warn">429: limited</Badge>
  return <Badge tone={status < 400 ? 'ok' : 'danger'}>{status}</Badge>
}

/** Tokens by class, without classes that the provider did not count. */
function tokensOf(call: Call): string {
  const classes: [string | null, string][] = [
    [call.inputTokens, 'read'],
    [call.outputTokens, 'written'],
    [call.cacheReadTokens, 'from the cache'],
    [call.cacheWriteTokens, 'into the cache'],
  ]
  const counted = classes.flatMap(([count, name]) =>
    count === null ? [] : [`${Number(count).toLocaleString()} ${name}`],
  )
  return counted.length > 0 ? `Tokens: ${counted.join(', ')}` : 'Tokens were not counted'
}
