// The state of an approval in one line: being sent, or who closed it and how.
import { useClient } from 'urql'
import { Button } from '../../ui/button'
import { Notice } from '../../ui/notice'
import { useNow } from '../../ui/now'
import { Status } from '../../ui/status'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import { useOrg } from '../organization'
import { useViewer } from '../viewer'
import { cancelDecision, DELAY_MS, retryDecision, type Sending, useSending } from './decisions'
import type { ApprovalRecord } from './fields'
import { answerWords, outcomeWords } from './words'

/** Who closed it, how, when, and with what comment. */
export function Outcome({ approval }: { approval: ApprovalRecord }) {
  const { user } = useViewer()
  const sending = useSending(approval.id)
  const answer = answerWords(approval)
  const isVerdict = approval.kind === 'ACTION'
  const said = isVerdict ? (approval.answer?.text ?? '') : answer
  return (
    <div className="space-y-1">
      {sending?.state === 'late' && (
        <p className="font-medium text-warn-text">
          “{sending.decision.said}” came too late and did not count.
        </p>
      )}
      <div className="flex flex-wrap items-center gap-2">
        <Status of="approval" value={approval.outcome ?? approval.status} />
        <span className="text-muted">
          {outcomeWords(approval, user.id)} · <Time at={approval.resolvedAt ?? approval.expiresAt} />
        </span>
      </div>
      {said && (
        <p className="whitespace-pre-wrap border-l-2 border-line pl-3">
          <Visible text={said} />
        </p>
      )}
      {approval.comment && (
        <p className="whitespace-pre-wrap border-l-2 border-line pl-3">
          <Visible text={approval.comment} />
        </p>
      )}
    </div>
  )
}

interface SendingDecisionProps {
  id: number
  sending: Sending
  /** The page has a shortcut that cancels it. */
  withKeys?: boolean
}

/** A decision being sent: how long it can be cancelled, or why it was refused. */
export function SendingDecision({ id, sending, withKeys }: SendingDecisionProps) {
  const org = useOrg()
  const client = useClient()
  const now = useNow(1000)
  // The clock ticks in whole seconds and may be one behind.
  const left = Math.min(DELAY_MS / 1000, Math.max(0, Math.ceil((sending.dueAt - now) / 1000)))
  if (sending.state === 'failed') {
    return (
      <div className="space-y-2">
        <Notice>
          “{sending.decision.said}” was not accepted. {sending.problem}
        </Notice>
        <div className="flex gap-2">
          <Button onClick={() => retryDecision(client, org.id, id)}>Try again</Button>
          <Button look="quiet" onClick={() => cancelDecision(id)}>
            Decide again
          </Button>
        </div>
      </div>
    )
  }
  const isWaiting = sending.state === 'waiting'
  return (
    <div className="flex min-h-9 flex-wrap items-center gap-3">
      <p role="status" className="min-w-0 grow">
        <span className="font-medium">{sending.decision.said}</span>
        <span className="text-muted">
          {isWaiting ? <span aria-hidden>{` – sent in ${left} s`}</span> : ' – sending…'}
        </span>
      </p>
      {isWaiting && (
        <Button onClick={() => cancelDecision(id)} keys={withKeys ? 'z' : undefined}>
          Cancel
        </Button>
      )}
    </div>
  )
}
