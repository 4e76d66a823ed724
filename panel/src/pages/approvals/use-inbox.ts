// The approvals of the inbox, live. Those just decided stay in place until the list is cleared.
import { useCallback, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { useClient } from 'urql'
import { graphql, type ResultOf } from '../../api/graphql'
import { readFresh } from '../../api/requests'
import { useFeed } from '../../api/use-feed'
import { ApprovalFields, ApprovalQuery, type ApprovalRecord } from '../../app/approvals/fields'
import { useOrg } from '../../app/organization'
import { hasLeft, withGone } from './gone'
import { groupAlerts, KINDS_OF, quickOnes, tabOf } from './groups'
import type { ApprovalsSearch } from './search'

const Inbox = graphql(
  `
    query ApprovalsInbox(
      $orgId: Id!
      $after: String
      $limit: Int
      $status: [ApprovalStatus!]
      $kinds: [ApprovalKind!]
      $severityAtLeast: Severity
      $agentId: Id
      $conversationId: Id
      $assigneeId: Id
      $snoozed: Boolean
      $search: String
      $sort: ApprovalSort
      $order: SortOrder
    ) {
      approvalFeed(
        orgId: $orgId
        after: $after
        limit: $limit
        status: $status
        kinds: $kinds
        severityAtLeast: $severityAtLeast
        agentId: $agentId
        conversationId: $conversationId
        assigneeId: $assigneeId
        snoozed: $snoozed
        search: $search
        sort: $sort
        order: $order
      ) {
        data { ...ApprovalFields }
        next
        total
      }
    }
  `,
  [ApprovalFields],
)

const NONE: ReadonlyMap<number, ApprovalRecord> = new Map()

export const idOf = ({ id }: ApprovalRecord) => id
/** If more leave at once, they are not kept. */
const MAX_KEPT = 50
const pageOf = (data: ResultOf<typeof Inbox>) => data.approvalFeed

/** The address's filters as the service's input. */
function filtersOf(search: ApprovalsSearch, orgId: number, userId: number) {
  const status = search.status ?? ['PENDING']
  const pendingOnly = status.length === 1 && status[0] === 'PENDING'
  const sort = search.sort ?? (pendingOnly ? 'RISK' : 'CREATED')
  return {
    orgId,
    status,
    kinds: search.kind ?? KINDS_OF[tabOf(search)],
    severityAtLeast: search.severity ?? null,
    agentId: search.agent ?? null,
    conversationId: search.conversation ?? null,
    assigneeId: search.mine ? userId : (search.assignee ?? null),
    snoozed: pendingOnly ? (search.snoozed ?? false) : null,
    search: search.q ?? null,
    sort,
    order: sort === 'EXPIRES' ? ('asc' as const) : null,
  }
}

export function useInbox(search: ApprovalsSearch, userId: number) {
  const org = useOrg()
  const client = useClient()
  const variables = filtersOf(search, org.id, userId)
  const feed = useFeed({ query: Inbox, variables, pageOf, idOf, on: ['APPROVAL'] })
  // Changes together with the items: with a new query's key, the previous items would count as gone.
  const key = feed.question
  const pendingOnly = variables.status.join() === 'PENDING'
  const [gone, setGone] = useState<{ key: string; items: Map<number, ApprovalRecord> }>({
    key,
    items: new Map(),
  })
  const kept = gone.key === key ? gone.items : NONE
  const dropped = useRef(new Set<number>())
  const shown = useRef<{ key: string; items: ApprovalRecord[] }>({ key, items: [] })

  // A missing approval was decided, snoozed or expired: it stays until its record says which. It must be in every
  // render in between, because a frozen list would drop it.
  const { items, left } = useMemo(() => {
    const before = shown.current.key === key ? shown.current.items : []
    const leaves = ({ id }: ApprovalRecord) => !kept.has(id) && !dropped.current.has(id)
    const left =
      pendingOnly && !feed.loading
        ? hasLeft(before, feed.items, feed.hasMore, idOf).filter(leaves).slice(0, MAX_KEPT)
        : []
    const gone = new Map([...left.map((item) => [item.id, item] as const), ...kept])
    return { items: withGone(before, feed.items, gone, idOf), left }
  }, [feed.items, feed.loading, feed.hasMore, kept, key, pendingOnly])

  useLayoutEffect(() => {
    shown.current = { key, items }
    for (const { id } of feed.items) dropped.current.delete(id)
    if (left.length === 0) return
    setGone((now) => add(now, key, left))
    for (const { id } of left) {
      void readFresh(client, ApprovalQuery, { orgId: org.id, id }).then(({ data }) => {
        const record = data?.approval
        if (record && record.status !== 'PENDING') return setGone((now) => add(now, key, [record]))
        dropped.current.add(id)
        setGone((now) => drop(now, key, id))
      })
    }
  }, [items, left, feed.items, key, client, org.id])

  const clear = useCallback(() => {
    shown.current = { key, items: [] }
    dropped.current.clear()
    setGone({ key, items: new Map() })
  }, [key])
  const found = useMemo(() => ({ ...groupAlerts(items), quick: quickOnes(items) }), [items])
  return { ...feed, ...found, decided: kept.size, clear }
}

type Gone = { key: string; items: Map<number, ApprovalRecord> }

function add(now: Gone, key: string, records: ApprovalRecord[]): Gone {
  const items = new Map(now.key === key ? now.items : [])
  for (const record of records) items.set(record.id, record)
  return { key, items }
}

function drop(now: Gone, key: string, id: number): Gone {
  const items = new Map(now.key === key ? now.items : [])
  items.delete(id)
  return { key, items }
}
