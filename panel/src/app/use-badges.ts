// Counts of pending items, for the navigation and the tab's title.
import { useEffect } from 'react'
import { graphql } from '../api/graphql'
import { useLive } from '../api/use-live'
import { useOrgIfAny } from './organization'
import { setTitleFrame } from './title'

const Badges = graphql(`
  query ShellBadges($orgId: Id!) {
    organization(orgId: $orgId) { id }
    overview(orgId: $orgId) {
      pendingApprovals { total }
      unreadConversations
    }
  }
`)

export function useBadges(): { approvals: number; conversations: number } {
  const org = useOrgIfAny()
  const { data } = useLive({
    query: Badges,
    variables: { orgId: org?.id ?? 0 },
    on: ['APPROVAL', 'CONVERSATION'],
    pause: org === null,
  })
  // Until the answer arrives, these are the previous organization's numbers.
  const overview = data?.organization?.id === org?.id ? data?.overview : null
  const approvals = overview?.pendingApprovals?.total ?? 0
  const conversations = overview?.unreadConversations ?? 0
  useEffect(() => setTitleFrame({ waiting: approvals }), [approvals])
  return { approvals, conversations }
}
