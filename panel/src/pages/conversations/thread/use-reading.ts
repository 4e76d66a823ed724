// Reports how far the user has read: the messages in view while the page is in front.
import { useCallback, useEffect, useRef } from 'react'
import { useClient } from 'urql'
import { graphql } from '../../../api/graphql'

const MarkRead = graphql(`
  mutation MarkRead($orgId: Id!, $conversationId: Id!, $seq: Int!) {
    markRead(orgId: $orgId, conversationId: $conversationId, seq: $seq) { id readSeq unread }
  }
`)

const PAUSE_MS = 600

/** `lastInView` returns the last visible seq. Call the returned function when that may have changed. */
export function useReading(
  orgId: number,
  conversationId: number,
  readSeq: number | null,
  lastInView: () => number,
) {
  const client = useClient()
  const known = useRef(0)
  known.current = Math.max(known.current, readSeq ?? 0)
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  const counts = readSeq !== null
  const look = useCallback(() => {
    if (!counts) return
    clearTimeout(timer.current)
    timer.current = setTimeout(() => {
      const seq = lastInView()
      if (document.visibilityState !== 'visible' || seq <= known.current) return
      const before = known.current
      known.current = seq
      void client
        .mutation(MarkRead, { orgId, conversationId, seq })
        .toPromise()
        .then(({ error }) => {
          if (error && known.current === seq) known.current = before
        })
    }, PAUSE_MS)
  }, [client, orgId, conversationId, counts, lastInView])
  useEffect(() => {
    document.addEventListener('visibilitychange', look)
    return () => {
      document.removeEventListener('visibilitychange', look)
      clearTimeout(timer.current)
    }
  }, [look])
  return look
}
