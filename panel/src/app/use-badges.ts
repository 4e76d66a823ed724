// What waits, in numbers, for the navigation and the browser's tab.
import { useEffect } from 'react'
import { graphql } from '../api/graphql'
import { useLive } from '../api/use-live'
import { useOrgIfAny } from './organization'
import { setTitleFrame } from './title'

const Badges = graphql(`
  query ShellBadges($orgId: Id!) {
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
  const approvals = data?.overview?.pendingApprovals?.total ?? 0
  const conversations = data?.overview?.unreadConversations ?? 0
  useEffect(() => setTitleFrame({ waiting: approvals }), [approvals])
  return { approvals, conversations }
}
