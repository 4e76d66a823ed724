// The inbox: everything that waits for a person, across all agents, riskiest first. Decided without leaving the list.
import { getRouteApi } from '@tanstack/react-router'
import { ShieldCheck } from 'lucide-react'
import { useCallback, useRef, useState } from 'react'
import type { DecideHandle } from '../../app/approvals/decide'
import type { ApprovalRecord } from '../../app/approvals/fields'
import { levelOf, raiserOf } from '../../app/approvals/level'
import { NothingMatches, narrowing } from '../../app/filters'
import { lazyPart } from '../../app/lazy-page'
import { useOrg } from '../../app/organization'
import { useViewer } from '../../app/viewer'
import { ActionButton } from '../../ui/actions'
import { Button } from '../../ui/button'
import { Empty } from '../../ui/empty'
import { List, type ListHandle } from '../../ui/list'
import { PageHeader } from '../../ui/page'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { InboxFilters, useInboxSearch } from './filters'
import { pendingWords } from './groups'
import { ApprovalRow } from './row'
import type { ApprovalsSearch } from './search'
import { InboxTabs, usePending } from './tabs'
import { useArrivals } from './use-arrivals'
import { useDeferredOpen } from './use-deferred-open'
import { idOf, useInbox } from './use-inbox'
import { isOpen, useKeys } from './use-keys'

const ApprovalPeek = lazyPart(() => import('./approval-peek'), 'ApprovalPeek')
void ApprovalPeek.preload()
const DecideSeveral = lazyPart(() => import('./several'), 'DecideSeveral')

const route = getRouteApi('/inside/o/$org/approvals')
const nameOf = (approval: ApprovalRecord) =>
  `${approval.title}, ${raiserOf(approval.agent).name}, ${levelOf(approval).toLowerCase()}`

export function ApprovalsPage() {
  const org = useOrg()
  const { user } = useViewer()
  const [search] = useInboxSearch()
  const navigate = route.useNavigate()
  const inbox = useInbox(search, user.id)
  const pending = usePending()
  const [activeId, setActiveId] = useState<number | null>(null)
  const [shown, setShown] = useState<ApprovalRecord[]>([])
  const handle = useRef<DecideHandle>(null)
  const list = useRef<ListHandle>(null)
  const title = useRef<HTMLHeadingElement>(null)
  const [deciding, decideSeveral] = useState<ApprovalRecord[] | null>(null)
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
        doc="approvals.md#who-decides"
        titleRef={title}
        about={about(inbox.total, search, pending)}
        actions={
          <>
            {inbox.decided > 0 && (
              <Button size="sm" onClick={inbox.clear}>
                Clear {inbox.decided} decided
              </Button>
            )}
            {inbox.quick.length > 1 && (
              <ActionButton
                size="sm"
                action={{
                  id: 'approvals.several',
                  label: 'Decide several at once…',
                  group: 'Approvals',
                  also: 'bulk all approve resolve',
                  refused: null,
                  run: () => decideSeveral(inbox.quick),
                }}
              >
                Decide several…
              </ActionButton>
            )}
          </>
        }
      >
        <InboxTabs pending={pending} />
      </PageHeader>
      <InboxFilters />
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
            row={(approval) => (
              <ApprovalRow approval={approval} equal={inbox.equal.get(approval.id)?.length} />
            )}
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
            empty={<Nothing />}
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
      {deciding && <DecideSeveral approvals={deciding} onClose={() => decideSeveral(null)} />}
      {arrivals}
    </>
  )
}

function about(
  total: number | undefined,
  search: ApprovalsSearch,
  pending: ReturnType<typeof usePending>,
): string {
  const filters = { ...search, peek: undefined, tab: undefined, sort: undefined }
  if (narrowing(filters).length === 0) return pending ? pendingWords(pending) : 'What agents ask people'
  if (total === undefined) return 'What agents ask people'
  const isEnded = search.status && !search.status.includes('PENDING')
  return `${total.toLocaleString()} ${isEnded && !search.q ? 'ended' : 'found'}`
}

function Nothing() {
  const [{ peek: _, tab, ...filters }, set] = useInboxSearch()
  if (narrowing(filters).length > 0)
    return <NothingMatches icon={ShieldCheck} filters={filters} onChange={set} />
  if (tab === 'alerts') {
    return (
      <Empty icon={ShieldCheck} title="No alerts">
        Failed channels, overloaded servers, missing sign-ins and unknown senders appear here.
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
