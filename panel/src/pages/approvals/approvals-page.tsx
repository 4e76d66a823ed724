// The inbox: everything that waits for a person, over all agents, riskiest first. Decided without leaving the list.
import { getRouteApi } from '@tanstack/react-router'
import { ShieldCheck } from 'lucide-react'
import { memo, useCallback, useRef, useState } from 'react'
import { useClient } from 'urql'
import { useLive } from '../../api/use-live'
import { Decide, type DecideHandle } from '../../app/approvals/decide'
import {
  cancelLatest,
  cancelWaiting,
  DELAY_MS,
  decide,
  draftPlace,
  isOnItsWay,
} from '../../app/approvals/decisions'
import { ApprovalQuery, type ApprovalRecord } from '../../app/approvals/fields'
import { useSnooze } from '../../app/approvals/handling'
import { snoozeChoices } from '../../app/approvals/snooze'
import { isHighRisk } from '../../app/approvals/words'
import { keptOf } from '../../app/kept'
import { useOrg } from '../../app/organization'
import { useViewer } from '../../app/viewer'
import { useActions } from '../../keys/use-actions'
import { useRefused } from '../../permissions/gate'
import { Button } from '../../ui/button'
import { Empty } from '../../ui/empty'
import { List } from '../../ui/list'
import { PageHeader } from '../../ui/page'
import { Peek } from '../../ui/peek'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton, Skeleton } from '../../ui/skeleton'
import { InboxFilters, useInboxSearch } from './filters'
import { ApprovalRow } from './row'
import { useAhead } from './use-ahead'
import { useArrivals } from './use-arrivals'
import { idOf, useInbox } from './use-inbox'
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
  const { peek } = search

  const go = (id: number | undefined, replace = true) =>
    navigate({ search: (before) => ({ ...before, peek: id }), replace })
  const ahead = useAhead(peek, go)
  const show = (id: number | undefined, replace?: boolean) => {
    ahead.stop()
    setActiveId(id ?? peek ?? activeId)
    void go(id, replace)
  }
  const currentId = ahead.id ?? peek ?? activeId ?? shown.find(isOpen)?.id ?? null
  // Nobody has read what is not drawn yet: the keys do nothing to it, nor to what waits while the list holds its order.
  const drawn = peek === undefined ? shown : inbox.items
  const current = ahead.id === null ? drawn.find(({ id }) => id === currentId) : undefined
  /** The next one that waits, below or else above. */
  const next = () => {
    const at = shown.findIndex(({ id }) => id === currentId)
    const rest = [...shown.slice(at + 1), ...shown.slice(0, Math.max(0, at))]
    const found = rest.find(isOpen)
    if (peek !== undefined && found) ahead.go(found.id)
    else if (peek !== undefined) show(undefined)
    setActiveId(found?.id ?? null)
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

const isOpen = ({ status, id }: ApprovalRecord) => status === 'PENDING' && !isOnItsWay(id)

function about(total: number | undefined, status: string[] | undefined): string {
  if (total === undefined) return 'What agents ask people'
  const waiting = !status || status.includes('PENDING')
  if (!waiting) return `${total} ended`
  return total === 1 ? '1 waits for a decision' : `${total} wait for a decision`
}

interface KeyProps {
  current: ApprovalRecord | undefined
  /** The one that is open is drawn. The list may not show it, or not yet. */
  peeked: boolean
  handle: React.RefObject<DecideHandle | null>
  next: () => void
  show: (id: number | undefined, replace?: boolean) => void
}

/** A, D, C and S on the approval that is open or marked, Z on the one that was decided last. */
function useKeys({ current, peeked, handle, next, show }: KeyProps): void {
  const org = useOrg()
  const client = useClient()
  const refused = useRefused('approval.resolve', current)
  const open = current && isOpen(current)
  const quick = (option: 'approve' | 'deny') => {
    if (peeked) return option === 'approve' ? handle.current?.approve() : handle.current?.deny()
    if (!current || !open) return
    // What is risky, a question or not an action is read before it is answered.
    const slow = current.kind !== 'ACTION' || (option === 'approve' && isHighRisk(current))
    if (slow) return show(current.id, false)
    const said = option === 'approve' ? 'Approve' : 'Deny'
    // The words that were begun for it go along.
    const text = keptOf(org.id, draftPlace(current.id)).trim()
    decide(client, org.id, current.id, { how: 'ANSWER', options: [option], text, said }, DELAY_MS)
    next()
  }
  const comment = () => {
    if (peeked) return handle.current?.comment()
    if (!current || !open) return
    show(current.id, false)
    setTimeout(() => handle.current?.comment(), 300)
  }
  const group = 'Approval'
  useActions([
    {
      id: 'approvals.approve',
      label: 'Approve or resolve',
      group,
      keys: 'a',
      refused,
      run: () => quick('approve'),
    },
    { id: 'approvals.deny', label: 'Deny or dismiss', group, keys: 'd', refused, run: () => quick('deny') },
    { id: 'approvals.comment', label: 'Answer with words', group, keys: 'c', refused, run: comment },
    {
      id: 'approvals.cancel',
      label: 'Cancel what is about to be sent',
      group,
      keys: 'z',
      // What is open if it was just decided; otherwise the last one: a decision has already moved on to the next approval.
      run: () => {
        if (!cancelWaiting(current?.id)) cancelLatest()
      },
    },
  ])
  useSnoozeKey(current)
}

function useSnoozeKey(current: ApprovalRecord | undefined): void {
  const snooze = useSnooze(current ?? NOTHING)
  useActions([
    {
      id: 'approvals.snooze',
      label: 'Snooze for an hour',
      group: 'Approval',
      keys: 's',
      run: () => {
        if (current?.status !== 'PENDING') return
        const choices = snoozeChoices(new Date(), current.expiresAt)
        const choice =
          choices.find(({ label, refused }) => label === 'For an hour' && !refused) ??
          choices.find(({ refused }) => !refused)
        if (choice) void snooze(choice.until, `Hidden: ${choice.label.toLowerCase()}`)
      },
    },
  ])
}

const NOTHING = { id: 0, snoozedUntil: null } as ApprovalRecord

interface PeekProps {
  id: number
  known: ApprovalRecord | undefined
  onClose: () => void
  onDecided: () => void
  handle: React.RefObject<DecideHandle | null>
}

/** One approval beside the list, also one that the list does not show. A key that moves in the list does not draw it again. */
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
