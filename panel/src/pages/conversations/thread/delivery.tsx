// The delivery state of a message sent through a channel. The line is there from the start, so that nothing moves
// later; only failures add text.
import { Check, Clock, type LucideIcon, Minus, RotateCw, TriangleAlert } from 'lucide-react'
import { graphql } from '../../../api/graphql'
import { useAct } from '../../../api/use-act'
import { useOrg } from '../../../app/organization'
import { Gate } from '../../../permissions/gate'
import { Button } from '../../../ui/button'
import { cx } from '../../../ui/cx'
import { Time } from '../../../ui/time'
import { Visible } from '../../../ui/visible'
import { type DeliveryWords, deliveryWords, type MessageDelivery } from './delivery-words'

const RetryDelivery = graphql(`
  mutation RetryDelivery($orgId: Id!, $messageId: Id!) {
    retryDelivery(orgId: $orgId, messageId: $messageId) { id delivery { status code error sentAt } }
  }
`)

const SIGNS: Record<DeliveryWords['is'], { icon: LucideIcon; tone: string }> = {
  waiting: { icon: Clock, tone: 'text-muted' },
  sent: { icon: Check, tone: 'text-muted' },
  failed: { icon: TriangleAlert, tone: 'text-danger-text' },
  unsent: { icon: Minus, tone: 'text-muted' },
}

/** The maximum length of a vendor's error; more helps no one. */
const MAX_ERROR = 300

interface Props {
  /** The message's id. */
  id: number
  delivery: MessageDelivery
  /** The channel sends nothing until someone changes it. */
  isOff: boolean
  /** Written by the current user. */
  mine: boolean
}

export function Delivery({ id, delivery, isOff, mine }: Props) {
  const { is, said, more, canRetry } = deliveryWords(delivery, isOff)
  const { icon: Icon, tone } = SIGNS[is]
  return (
    <div className={cx('mt-0.5 text-xs', tone)} data-delivery={delivery.status}>
      <p className={cx('flex min-h-5 items-center gap-1.5', mine && 'justify-end')}>
        <Icon size={12} aria-hidden className="shrink-0" />
        <span>
          {said}
          {delivery.sentAt && is === 'sent' && (
            <>
              {' '}
              <Time at={delivery.sentAt} as="stamp" />
            </>
          )}
        </span>
        {canRetry && <Again id={id} />}
      </p>
      {more && (
        <p className={cx('break-words', mine && 'text-right')}>
          <Visible text={more.slice(0, MAX_ERROR)} />
        </p>
      )}
    </div>
  )
}

function Again({ id }: { id: number }) {
  const org = useOrg()
  const act = useAct(RetryDelivery)
  return (
    <Gate may="agent.interact">
      <Button
        look="quiet"
        size="sm"
        icon={RotateCw}
        busy={act.pending}
        onClick={() => void act({ orgId: org.id, messageId: id }, { said: 'Sending again' })}
      >
        Send again
      </Button>
    </Gate>
  )
}
