// Refused senders and the reasons. A sender who is not on the list can be let in at once; this can be undone.
import { UserPlus } from 'lucide-react'
import { useRef, useState } from 'react'
import { useAct } from '../../api/use-act'
import { useOrg } from '../../app/organization'
import { Gate } from '../../permissions/gate'
import { Button } from '../../ui/button'
import { Panel } from '../../ui/panel'
import { words } from '../../ui/status'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import { AddOrigin, type Channel, RemoveOrigin } from './channel'

type Refusal = Channel['refused'][number]

/** Further ones are shown on request. */
const FIRST = 5

const REASONS: Record<string, { why: string; todo: string }> = {
  NOT_WHITELISTED: { why: 'Not on the list', todo: '' },
  LABEL: {
    why: 'The message had none of the labels',
    todo: 'Ask them to add one, or change the labels below.',
  },
  UNPROVEN: {
    why: 'The mail server did not verify the sender',
    todo: 'Ask their provider to sign its mails (DKIM, DMARC).',
  },
  NOT_ADDRESSED: {
    why: 'Addressed to others',
    todo: 'Ask them to mention the agent, or add the group to the list below.',
  },
}

export function Refused({ channel }: { channel: Channel }) {
  const [isWhole, showAll] = useState(false)
  const here = useRef<HTMLDivElement>(null)
  const { refused } = channel
  // The row of an admitted sender disappears, and would take the focus with it.
  const stay = () => requestAnimationFrame(() => here.current?.focus())
  return (
    <div ref={here} tabIndex={-1}>
      {refused.length > 0 && (
        <Panel
          title="Refused senders"
          doc="channels/README.md#who-may-write"
          about="Their messages were not stored. They have to write again."
        >
          <ul aria-label="Refused senders" className="divide-y divide-line rounded-card border border-line">
            {(isWhole ? refused : refused.slice(0, FIRST)).map((refusal) => (
              <Row key={refusal.originId} channel={channel} refusal={refusal} onDone={stay} />
            ))}
          </ul>
          {!isWhole && refused.length > FIRST && (
            <Button look="quiet" size="sm" className="mt-1" onClick={() => showAll(true)}>
              Show all {refused.length}
            </Button>
          )}
        </Panel>
      )}
    </div>
  )
}

interface RowProps {
  channel: Channel
  refusal: Refusal
  onDone: () => void
}

function Row({ channel, refusal, onDone }: RowProps) {
  const { id: orgId } = useOrg()
  const [add, remove] = [useAct(AddOrigin), useAct(RemoveOrigin)]
  const { originId, originName, reason, count, lastAt } = refusal
  const name = originName ?? originId
  const known = REASONS[reason]
  const letIn = async () => {
    const send = { orgId, id: channel.id, originId }
    const { error } = await add(send, { said: `${name} may write`, undo: () => remove(send) })
    if (!error) onDone()
  }
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-1.5 px-3 py-2">
      <div className="min-w-0 grow basis-48">
        <p className="flex flex-wrap items-baseline gap-x-2">
          <span className="min-w-0 break-words font-medium">
            <Visible text={name} />
          </span>
          {originName && (
            <span className="min-w-0 break-all font-mono text-xs text-muted">
              <Visible text={originId} />
            </span>
          )}
        </p>
        <p className="text-sm text-muted">
          {known?.why ?? words(reason)} · {count === 1 ? 'once' : `${count} times`} · <Time at={lastAt} />
        </p>
        {known?.todo && <p className="text-sm text-muted">{known.todo}</p>}
      </div>
      {reason === 'NOT_WHITELISTED' && (
        <Gate on={channel} may="agent.edit">
          <Button
            size="sm"
            icon={UserPlus}
            busy={add.pending}
            aria-label={`Let in ${name}`}
            onClick={() => void letIn()}
          >
            Let in
          </Button>
        </Gate>
      )}
    </li>
  )
}
