// An approval in the inbox: its risk, its subject, its agent, its waiting time.
import { Clock } from 'lucide-react'
import { memo } from 'react'
import { useSending } from '../../app/approvals/decisions'
import type { ApprovalRecord } from '../../app/approvals/fields'
import { levelOf, raiserOf } from '../../app/approvals/level'
import { SendingDecision } from '../../app/approvals/outcome'
import { inputLine, outcomeWords } from '../../app/approvals/words'
import { useViewer } from '../../app/viewer'
import { Avatar } from '../../ui/avatar'
import { cx } from '../../ui/cx'
import { useFade } from '../../ui/fade'
import { Status } from '../../ui/status'
import { Countdown, Time } from '../../ui/time'
import { Visible } from '../../ui/visible'

const EDGE = {
  CRITICAL: 'border-l-danger',
  HIGH: 'border-l-danger',
  MEDIUM: 'border-l-warn-text',
  LOW: 'border-l-transparent',
}

/** Memoised by its approval, because each key press renders the whole list. */
export const ApprovalRow = memo(function ApprovalRow({
  approval,
  equal = 1,
}: {
  approval: ApprovalRecord
  /** The number of equal alerts that this row stands for. */
  equal?: number
}) {
  const sending = useSending(approval.id)
  const isOpen = approval.status === 'PENDING'
  const line = inputLine(approval)
  const raiser = raiserOf(approval.agent)
  const state = useFade<HTMLDivElement>()
  return (
    <div
      role="gridcell"
      tabIndex={-1}
      className={cx(
        'flex min-h-16 items-center gap-3 border-l-3 py-2 pr-4 pl-3.25 sm:pr-6 sm:pl-5.25',
        isOpen ? EDGE[levelOf(approval)] : 'border-l-transparent',
      )}
    >
      <Avatar {...raiser} square />
      <div className={cx('min-w-0 grow', !isOpen && 'opacity-75')}>
        <div className="flex min-w-0 items-center gap-2">
          <span className="min-w-0 truncate font-medium">
            <Visible text={approval.title} />
          </span>
          {equal > 1 && (
            <span className="shrink-0 text-sm text-muted tabular-nums">
              <span aria-hidden>×{equal}</span>
              <span className="sr-only">{equal} equal alerts</span>
            </span>
          )}
          {isOpen && approval.risk !== null && (
            <span className="hidden shrink-0 text-xs tabular-nums text-muted sm:inline">
              risk {approval.risk}
            </span>
          )}
        </div>
        {isOpen && sending && sending.state !== 'late' ? (
          <SendingDecision id={approval.id} sending={sending} withKeys />
        ) : isOpen ? (
          <div className="flex min-w-0 items-center gap-1.5 text-sm text-muted">
            <span className="max-w-2/3 shrink-0 truncate">{raiser.name}</span>
            {line && line !== approval.title && (
              <>
                <span aria-hidden>·</span>
                <span className={cx('min-w-0 truncate', approval.request && 'font-mono text-xs')}>
                  <Visible text={line} />
                </span>
              </>
            )}
          </div>
        ) : (
          <Ended approval={approval} late={sending?.state === 'late'} />
        )}
      </div>
      <div ref={state} className="flex shrink-0 flex-col items-end gap-1 rounded-control text-xs text-muted">
        {isOpen ? (
          <>
            <Status of="severity" value={levelOf(approval)} />
            <span className="flex items-center gap-1">
              {approval.assigneeName && (
                <span className="hidden max-w-32 truncate sm:inline">{approval.assigneeName} ·</span>
              )}
              {approval.expiresAt ? (
                <>
                  <Clock size={11} aria-hidden />
                  <span className="sr-only">Expires:</span>
                  <Countdown to={approval.expiresAt} over="now" />
                </>
              ) : (
                <Time at={approval.createdAt} as="short" />
              )}
            </span>
          </>
        ) : (
          <>
            <Status of="approval" value={approval.outcome ?? approval.status} />
            <Time at={approval.resolvedAt ?? approval.expiresAt} as="short" />
          </>
        )}
      </div>
    </div>
  )
})

function Ended({ approval, late }: { approval: ApprovalRecord; late: boolean }) {
  const { user } = useViewer()
  return (
    <p className="truncate text-sm text-muted">
      {late && <span className="font-medium text-warn-text">Yours came too late. </span>}
      {outcomeWords(approval, user.id)}
    </p>
  )
}
