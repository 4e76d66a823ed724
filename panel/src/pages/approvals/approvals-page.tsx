// The inbox: everything that waits for a person, across all agents, riskiest first. Decided without leaving the list.
import { getRouteApi } from '@tanstack/react-router'
import { ShieldCheck } from 'lucide-react'
import { memo, useCallback, useRef, useState } from 'react'
import { useLive } from '../../api/use-live'
import { Decide, type DecideHandle } from '../../app/approvals/decide'
import { ApprovalQuery, type ApprovalRecord } from '../../app/approvals/fields'
import { useOrg } from '../../app/organization'
import { useViewer } from '../../app/viewer'
import { Button } from '../../ui/button'
import { Empty } from '../../ui/empty'
import { List, type ListHandle } from '../../ui/list'
import { PageHeader } from '../../ui/page'
import { Peek } from '../../ui/peek'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton, Skeleton } from '../../ui/skeleton'
import { InboxFilters, useInboxSearch } from './filters'
import { ApprovalRow } from './row'
import { useArrivals } from './use-arrivals'
import { useDeferredOpen } from './use-deferred-open'
import { idOf, useInbox } from './use-inbox'
import { isOpen, useKeys } from './use-keys'
import { WholeApproval } from './whole'

const route = getRouteApi('/inside/o/$org/approvals')
const nameOf = ({ title, agent, severity }: ApprovalRecord) =>
  `${title}, ${agent?.name ?? 'Muster'}, ${severity.toLowerCase()}`

export function ApprovalsPage() {
  const org = useOrg()
  const { user } = useViewer()
  const [search, set] = useInboxSearch()
  const navigate = route.useNavigate()
  const inbox = useInbox(search, user.id)
  const [activeId, setActiveId] = useState<number | null>(null)
  const [shown, setShown] = useState<ApprovalRecord[]>([])
  const handle = useRef<DecideHandle>(null)
  const list = useRef<ListHandle>(null)
  const title = useRef<HTMLHeadingElement>(null)
  const { peek } = search

  const go = (id: number | undefined, replace = true) =>
    navigate({ search: (before) => ({ ...before, peek: id }), replace })
  const ahead = useDeferredOpen(peek, go)
  const show = (id: number | undefined, replace?: boolean) => {
    ahead.stop()
    setActiveId(id ?? peek ?? activeId)
    void go(id, replace)
  }
  const currentId = ahead.id ?? peek ?? activeId ?? shown.find(isOpen)?.id ?? null
  // No one has read an unrendered approval: shortcuts ignore it, and also those held back while the order is frozen.
  const drawn = peek === undefined ? shown : inbox.items
  const current = ahead.id === null ? drawn.find(({ id }) => id === currentId) : undefined
  /** Selects the next pending one, below or else above. The focus must leave the decided one. */
  const next = () => {
    const at = shown.findIndex(({ id }) => id === currentId)
    const rest = [...shown.slice(at + 1), ...shown.slice(0, Math.max(0, at)).reverse()]
    const found = rest.find(isOpen)
    if (found) return list.current?.goTo(found.id)
    // If more wait behind a frozen order, the focus keeps it frozen: nothing new appears under the keys.
    const isLast = !inbox.items.some((item) => item.id !== currentId && isOpen(item))
    if (isLast && list.current?.isFocusFree()) title.current?.focus()
    if (peek !== undefined) show(undefined)
    setActiveId(null)
  }
  useKeys({ current, peeked: peek !== undefined && ahead.id === null, handle, next, show })
  const arrivals = useArrivals(inbox.items)
  const latest = useRef({ show, next })
  latest.current = { show, next }
  const close = useCallback(() => latest.current.show(undefined), [])
  const decided = useCallback(() => latest.current.next(), [])

  return (
    <>
      <PageHeader
        title="Approvals"
        titleRef={title}
        about={about(inbox.total, search.status)}
        actions={
          inbox.decided > 0 && (
            <Button size="sm" onClick={inbox.clear}>
              Clear {inbox.decided} decided
            </Button>
          )
        }
      >
        <InboxFilters />
      </PageHeader>
      <div className="flex min-h-0 grow overflow-x-clip">
        {inbox.error && inbox.items.length === 0 ? (
          <ProblemView error={inbox.error} retry={inbox.refetch} />
        ) : inbox.loading ? (
          <div className="grow">
            <ListSkeleton />
          </div>
        ) : (
          <List
            label="Approvals"
            items={inbox.items}
            idOf={idOf}
            nameOf={nameOf}
            rowHeight={66}
            row={(approval) => <ApprovalRow approval={approval} />}
            linkOf={({ id }) => ({ to: '/o/$org/approvals/$id', params: { org: org.id, id } }) as never}
            onOpen={({ id }) => show(id, peek !== undefined)}
            openId={ahead.id ?? peek ?? activeId}
            onActive={({ id }) => {
              setActiveId(id)
              if (peek !== undefined) ahead.go(id)
            }}
            onMark={({ id }) => peek === undefined && setActiveId(id)}
            onShown={setShown}
            handle={list}
            question={inbox.question}
            hasMore={inbox.hasMore}
            onEnd={inbox.loadMore}
            empty={<Nothing search={search} clear={set} />}
          />
        )}
        {peek !== undefined && (
          <ApprovalPeek
            key="peek"
            id={peek}
            known={inbox.items.find(({ id }) => id === peek)}
            onClose={close}
            onDecided={decided}
            handle={handle}
          />
        )}
      </div>
      {arrivals}
    </>
  )
}

function about(total: number | undefined, status: string[] | undefined): string {
  if (total === undefined) return 'What agents ask people'
  const waiting = !status || status.includes('PENDING')
  if (!waiting) return `${total} ended`
  return total === 1 ? '1 waits for a decision' : `${total} wait for a decision`
}

interface PeekProps {
  id: number
  known: ApprovalRecord | undefined
  onClose: () => void
  onDecided: () => void
  handle: React.RefObject<DecideHandle | null>
}

/** An approval beside the list, even if not in the list. Memoised, so that moving in the list does not re-render it. */
const ApprovalPeek = memo(function ApprovalPeek({ id, known, onClose, onDecided, handle }: PeekProps) {
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
        <WholeApproval key={approval.id} approval={approval} />
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

function Nothing({ search, clear }: { search: object; clear: (change: Record<string, undefined>) => void }) {
  const filters = Object.entries(search).filter(([name, value]) => name !== 'peek' && value !== undefined)
  if (filters.length > 0) {
    return (
      <Empty
        icon={ShieldCheck}
        title="Nothing matches"
        action={
          <Button onClick={() => clear(Object.fromEntries(filters.map(([name]) => [name, undefined])))}>
            Clear the filters
          </Button>
        }
      >
        Change or clear the filters.
      </Empty>
    )
  }
  return (
    <Empty
      icon={ShieldCheck}
      title="Nothing waits for you"
      command={'query { approvalFeed(orgId: …, status: [PENDING], sort: RISK) { data { id title risk } } }'}
    >
      When an agent wants to do something risky, or has a question, it asks here and waits. You see exactly
      what would run before you decide.
    </Empty>
  )
}
