// An approval inside its conversation: the same form as in the inbox.
import { Link } from '@tanstack/react-router'
import { ShieldQuestion } from 'lucide-react'
import { useLive } from '../../../api/use-live'
import { Decide } from '../../../app/approvals/decide'
import { ApprovalSubject } from '../../../app/approvals/details'
import { ApprovalQuery } from '../../../app/approvals/fields'
import { KINDS, riskWords } from '../../../app/approvals/words'
import { useOrg } from '../../../app/organization'
import { Skeleton } from '../../../ui/skeleton'
import { Countdown } from '../../../ui/time'
import { Visible } from '../../../ui/visible'

export function InlineApproval({ id }: { id: number }) {
  const org = useOrg()
  const { data, loading } = useLive({
    query: ApprovalQuery,
    variables: { orgId: org.id, id },
    on: (change) => change.kind === 'APPROVAL' && change.id === id,
    pause: !org.can('approval.view'),
  })
  const approval = data?.approval
  if (loading) return <Skeleton className="h-20" />
  if (!approval) return <p className="text-center text-sm text-muted">A decision was asked for here.</p>
  const isOpen = approval.status === 'PENDING'
  return (
    <section
      aria-label={`${KINDS[approval.kind].name}: ${approval.title}`}
      className="rounded-card border border-line sm:ml-8.5 data-open:border-warn-text"
      data-open={isOpen || undefined}
    >
      <header className="flex flex-wrap items-center gap-x-2 gap-y-1 px-3 pt-2.5">
        <ShieldQuestion size={15} aria-hidden className="shrink-0 text-warn-text" />
        <h3 className="min-w-0 grow font-medium">
          <Visible text={approval.title} />
        </h3>
        <span className="text-xs text-muted">
          {riskWords(approval)}
          {isOpen && approval.expiresAt && (
            <>
              {' · '}
              <Countdown to={approval.expiresAt} before="expires in " over="expires now" />
            </>
          )}
        </span>
        <Link
          to="/o/$org/approvals/$id"
          params={{ org: org.id, id }}
          className="text-xs text-accent-text hover:underline"
        >
          Open
        </Link>
      </header>
      <div className="space-y-3 p-2.5 sm:p-3">
        {isOpen && <ApprovalSubject approval={approval} />}
        <Decide approval={approval} />
      </div>
    </section>
  )
}
