// The events for an endpoint: the state of each, sending one again, and replaying all since a time.
import { RotateCw } from 'lucide-react'
import { useState } from 'react'
import { graphql, type ResultOf } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useFeed } from '../../api/use-feed'
import { useOrg } from '../../app/organization'
import { Gate } from '../../permissions/gate'
import { Badge, type Tone } from '../../ui/badge'
import { Button, IconButton } from '../../ui/button'
import { Dialog } from '../../ui/dialog'
import { Field } from '../../ui/field'
import { Select } from '../../ui/inputs'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { Time } from '../../ui/time'
import { say } from '../../ui/toast-store'
import { Visible } from '../../ui/visible'
import type { EventEndpoint } from './event-endpoints'

const DeliveriesQuery = graphql(`
  query EventDeliveries($orgId: Id!, $endpointId: Id!, $after: String, $limit: Int) {
    eventDeliveries(orgId: $orgId, endpointId: $endpointId, after: $after, limit: $limit) {
      next
      data { id type status attempts error nextAttemptAt createdAt sentAt }
    }
  }
`)
const Retry = graphql(`
  mutation RetryEventDelivery($orgId: Id!, $id: Id!) {
    retryEventDelivery(orgId: $orgId, id: $id) { id status attempts error nextAttemptAt sentAt }
  }
`)
const Replay = graphql(`
  mutation ReplayEvents($orgId: Id!, $endpointId: Id!, $from: Timestamp!) {
    replayEvents(orgId: $orgId, endpointId: $endpointId, from: $from)
  }
`)

type Delivery = NonNullable<ResultOf<typeof DeliveriesQuery>['eventDeliveries']>['data'][number]

const SPANS = [
  { value: '1', label: 'The last hour' },
  { value: '24', label: 'The last day' },
  { value: '168', label: 'The last week' },
  { value: '720', label: 'The last 30 days' },
] as const

export function EventDeliveries({ endpoint, onClose }: { endpoint: EventEndpoint; onClose: () => void }) {
  const { id: orgId } = useOrg()
  const feed = useFeed({
    query: DeliveriesQuery,
    variables: { orgId, endpointId: endpoint.id },
    pageOf: ({ eventDeliveries }) => eventDeliveries,
    idOf: ({ id }: Delivery) => id,
    on: ({ kind, id }) => kind === 'EVENT_ENDPOINT' && id === endpoint.id,
  })
  return (
    <Dialog
      open
      onClose={onClose}
      title={`Events for ${endpoint.name}`}
      about="From the last 30 days, newest first."
      width="lg"
      footer={<Button onClick={onClose}>Close</Button>}
    >
      <Gate may="organization.edit">
        <ReplayFrom endpoint={endpoint} onReplayed={feed.refetch} />
        {feed.error && feed.items.length === 0 ? (
          <ProblemView error={feed.error} retry={feed.refetch} />
        ) : feed.loading ? (
          <ListSkeleton />
        ) : feed.items.length === 0 ? (
          <p className="text-muted">No events for this endpoint yet.</p>
        ) : (
          <ol className="divide-y divide-line rounded-card border border-line">
            {feed.items.map((delivery) => (
              <Line key={delivery.id} delivery={delivery} isActive={endpoint.isActive} />
            ))}
          </ol>
        )}
        {feed.hasMore && (
          <Button size="sm" onClick={feed.loadMore}>
            Older events
          </Button>
        )}
      </Gate>
    </Dialog>
  )
}

function ReplayFrom({ endpoint, onReplayed }: { endpoint: EventEndpoint; onReplayed: () => void }) {
  const { id: orgId } = useOrg()
  const replay = useAct(Replay)
  const [span, setSpan] = useState<(typeof SPANS)[number]['value']>('24')
  const send = async () => {
    const from = new Date(Date.now() - Number(span) * 3_600_000).toISOString()
    const { data, error } = await replay({ orgId, endpointId: endpoint.id, from })
    if (error) return
    say(replayed(data?.replayEvents ?? 0))
    onReplayed()
  }
  return (
    <div className="mb-4 flex flex-wrap items-end gap-2">
      <Field label="Send again" hint="In their order and with their ids: a receiver recognizes repetitions.">
        <Select value={span} onValue={setSpan} options={SPANS} />
      </Field>
      <Button busy={replay.pending} onClick={() => void send()}>
        Replay
      </Button>
    </div>
  )
}

function replayed(count: number): string {
  if (count === 0) return 'No events to send again'
  return count === 1 ? '1 event is sent again' : `${count} events are sent again`
}

const STATES: Record<Delivery['status'], { tone: Tone; label: string }> = {
  PENDING: { tone: 'info', label: 'Being sent' },
  WAITING: { tone: 'warn', label: 'Waiting' },
  SENT: { tone: 'ok', label: 'Accepted' },
  FAILED: { tone: 'danger', label: 'Failed' },
}

function Line({ delivery, isActive }: { delivery: Delivery; isActive: boolean }) {
  const { id: orgId } = useOrg()
  const retry = useAct(Retry)
  const { id, type, status, attempts, error, nextAttemptAt, createdAt } = delivery
  const state = STATES[status]
  return (
    <li className="flex items-start gap-2 px-3 py-2">
      <div className="min-w-0 grow">
        <p className="flex flex-wrap items-center gap-x-2 gap-y-0.5">
          <span className="min-w-0 font-medium break-words">{type}</span>
          <Badge tone={state.tone}>{state.label}</Badge>
        </p>
        <p className="text-sm text-muted">
          <Time at={createdAt} as="stamp" />, evt_{id},{' '}
          {attempts === 1 ? '1 attempt' : `${attempts} attempts`}
        </p>
        {error && (
          <p className="text-sm break-words text-danger-text">
            <Visible text={error} />{' '}
            {nextAttemptAt && (
              <>
                Next attempt: <Time at={nextAttemptAt} />.
              </>
            )}
          </p>
        )}
      </div>
      {isActive && (
        <IconButton
          icon={RotateCw}
          size="sm"
          label={`Send event ${id} again`}
          busy={retry.pending}
          onClick={() => void retry({ orgId, id }, { said: 'Sending again' })}
        />
      )}
    </li>
  )
}
