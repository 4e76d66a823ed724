// An approval beside the list. Loads in parallel with the list.
import { memo } from 'react'
import { useLive } from '../../api/use-live'
import { Decide, type DecideHandle } from '../../app/approvals/decide'
import { ApprovalQuery, type ApprovalRecord } from '../../app/approvals/fields'
import { useOrg } from '../../app/organization'
import { Peek } from '../../ui/peek'
import { ProblemView } from '../../ui/problem'
import { Skeleton } from '../../ui/skeleton'
import { WholeApproval } from './whole'

interface PeekProps {
  id: number
  known: ApprovalRecord | undefined
  onClose: () => void
  onDecided: () => void
  handle: React.RefObject<DecideHandle | null>
}

/** An approval beside the list, even if not in the list. Memoised, so that moving in the list does not re-render it. */
export const ApprovalPeek = memo(function ApprovalPeek({ id, known, onClose, onDecided, handle }: PeekProps) {
  const org = useOrg()
  const { data, error, refetch } = useLive({
    query: ApprovalQuery,
    variables: { orgId: org.id, id },
    on: (change) => change.kind === 'APPROVAL' && change.id === id,
  })
  const read = data?.approval
  const approval = read?.id === id ? read : known
  return (
    <Peek
      title={approval?.title ?? 'Approval'}
      onClose={onClose}
      link={{ to: '/o/$org/approvals/$id', params: { org: org.id, id } } as never}
      footer={approval && <Decide approval={approval} onDecided={onDecided} handle={handle} withKeys />}
    >
      {approval ? (
        <WholeApproval key={approval.id} approval={approval} withTitle />
      ) : error ? (
        <ProblemView error={error} retry={refetch} />
      ) : (
        <div className="space-y-3 p-5">
          <Skeleton className="w-2/3" />
          <Skeleton className="h-32" />
        </div>
      )}
    </Peek>
  )
})
