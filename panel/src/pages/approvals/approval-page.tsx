// An approval on its own page: the target of links in mails, suited to phones.
import { getRouteApi, Link } from '@tanstack/react-router'
import { useRef } from 'react'
import { useLive } from '../../api/use-live'
import { Decide, type DecideHandle } from '../../app/approvals/decide'
import { cancelDecision } from '../../app/approvals/decisions'
import { ApprovalQuery } from '../../app/approvals/fields'
import { useOrg } from '../../app/organization'
import { useActions } from '../../keys/use-actions'
import { PageHeader } from '../../ui/page'
import { ProblemView } from '../../ui/problem'
import { Skeleton } from '../../ui/skeleton'
import { Visible } from '../../ui/visible'
import { NextApproval } from './next'
import { WholeApproval } from './whole'

const route = getRouteApi('/inside/o/$org/approvals/$id')

export function ApprovalPage() {
  const org = useOrg()
  const { id } = route.useParams()
  const { seq } = route.useSearch()
  const handle = useRef<DecideHandle>(null)
  const { data, error, refetch } = useLive({
    query: ApprovalQuery,
    variables: { orgId: org.id, id },
    on: (change) => change.kind === 'APPROVAL' && change.id === id,
  })
  const group = 'Approval'
  useActions([
    { id: 'approval.approve', label: 'Approve', group, keys: 'a', run: () => handle.current?.approve() },
    { id: 'approval.deny', label: 'Deny', group, keys: 'd', run: () => handle.current?.deny() },
    {
      id: 'approval.comment',
      label: 'Answer with words',
      group,
      keys: 'c',
      run: () => handle.current?.comment(),
    },
    {
      id: 'approval.cancel',
      label: 'Cancel pending decisions',
      group,
      keys: 'z',
      run: () => cancelDecision(id),
    },
  ])
  const approval = data?.approval
  return (
    <>
      <PageHeader
        title={
          // Never cut: it says what is decided.
          <span className="block whitespace-normal break-words">
            <Visible text={approval?.title ?? 'Approval'} />
          </span>
        }
        name={approval?.title ?? 'Approval'}
        doc="panel.md#deciding"
        above={
          <Link to="/o/$org/approvals" params={{ org: org.id }} className="hover:underline">
            Approvals
          </Link>
        }
      />
      {approval ? (
        <>
          <div className="min-h-0 grow overflow-y-auto">
            <div className="max-w-3xl sm:px-2">
              <WholeApproval approval={approval} seq={seq} />
            </div>
          </div>
          <footer className="shrink-0 border-t border-line bg-canvas">
            <div className="max-w-3xl px-4 py-3 sm:px-6">
              <Decide approval={approval} handle={handle} withKeys />
              {approval.status !== 'PENDING' && <NextApproval />}
            </div>
          </footer>
        </>
      ) : error ? (
        <ProblemView error={error} retry={refetch} />
      ) : (
        <div className="w-full max-w-3xl space-y-3 p-4 sm:px-6">
          <Skeleton className="w-2/3" />
          <Skeleton className="h-40" />
        </div>
      )}
    </>
  )
}
