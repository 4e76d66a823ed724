// Decisions and alerts apart, each with the number of pending ones.
import type { LinkProps } from '@tanstack/react-router'
import { graphql } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import { Tabs } from '../../ui/tabs'
import { useInboxSearch } from './filters'
import { KINDS_OF, type Tab, tabOf } from './groups'

const Pending = graphql(`
  query ApprovalsPending($orgId: Id!, $decisions: [ApprovalKind!], $alerts: [ApprovalKind!]) {
    decisions: approvalFeed(orgId: $orgId, status: [PENDING], snoozed: false, kinds: $decisions, limit: 1) { total }
    alerts: approvalFeed(orgId: $orgId, status: [PENDING], snoozed: false, kinds: $alerts, limit: 1) { total }
  }
`)

const TABS: { id: Tab; label: string }[] = [
  { id: 'decisions', label: 'Decisions' },
  { id: 'alerts', label: 'Alerts' },
  { id: 'all', label: 'All' },
]

/** The numbers of pending decisions and alerts. */
export function usePending(): { decisions: number; alerts: number } | undefined {
  const { id: orgId } = useOrg()
  const { data } = useLive({
    query: Pending,
    variables: { orgId, decisions: KINDS_OF.decisions, alerts: KINDS_OF.alerts },
    on: ['APPROVAL'],
  })
  return data && { decisions: data.decisions?.total ?? 0, alerts: data.alerts?.total ?? 0 }
}

export function InboxTabs({ pending }: { pending: ReturnType<typeof usePending> }) {
  const [search] = useInboxSearch()
  const count = (id: Tab) => (id === 'all' ? undefined : pending?.[id])
  return (
    <Tabs
      label="Decisions and alerts"
      current={tabOf(search)}
      tabs={TABS.map(({ id, label }) => ({
        id,
        label,
        count: count(id),
        link: {
          to: '.',
          search: (before: object) => ({ ...before, tab: id, kind: undefined, peek: undefined }),
        } as unknown as LinkProps,
      }))}
    />
  )
}
