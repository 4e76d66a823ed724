// The messages of a conversation: a window in memory, extended in both directions, and live.
import type { CombinedError } from '@urql/core'
import { useCallback, useEffect, useMemo, useReducer, useRef, useState } from 'react'
import { useClient } from 'urql'
import { graphql } from '../../../api/graphql'
import { listen, RETRY_MS } from '../../../api/listen'
import { onChange } from '../../../api/live'
import { readFresh } from '../../../api/requests'
import { MessageFields, type MessageRecord } from '../../../app/thread/fields'
import { bufferUpdates } from './update-buffer'
import {
  EMPTY,
  firstSeq,
  lastSeq,
  MAX_MESSAGES,
  refreshed,
  replaced,
  type Window,
  withAnswered,
  withNewer,
  withOlder,
  withUpdate,
} from './window'

const PAGE = 60

const Messages = graphql(
  `
    query ThreadMessages(
      $orgId: Id!
      $conversationId: Id!
      $aroundSeq: Int
      $beforeSeq: Int
      $afterSeq: Int
      $limit: Int
    ) {
      messages(
        orgId: $orgId
        conversationId: $conversationId
        aroundSeq: $aroundSeq
        beforeSeq: $beforeSeq
        afterSeq: $afterSeq
        limit: $limit
      ) {
        data { ...MessageFields }
        hasBefore
        hasAfter
      }
    }
  `,
  [MessageFields],
)
const MessageAdded = graphql(
  `
    subscription ThreadMessageAdded($orgId: Id!, $conversationId: Id!) {
      messageAdded(orgId: $orgId, conversationId: $conversationId) { ...MessageFields }
    }
  `,
  [MessageFields],
)

export interface Thread {
  window: Window
  /** Nothing has loaded yet. */
  loading: boolean
  error: CombinedError | undefined
  /** The newest known seq, even if it is not in memory. */
  newest: number
  older: () => void
  newer: () => void
  /** Loads a seq into memory; by default the end. */
  go: (seq?: number) => Promise<void>
  /** Adds the user's own message, from the response to posting it. */
  sent: (message: MessageRecord) => void
}

/** `known`: the newest seq according to the conversation's record. */
export function useThread(orgId: number, conversationId: number, known: number): Thread {
  const client = useClient()
  const [window, setWindow] = useState<Window>(EMPTY)
  const [loading, setLoading] = useState(true)
  const [error, setError] = useState<CombinedError>()
  const [newest, setNewest] = useState(0)
  const now = useRef(window)
  const busy = useRef(false)
  const failedAt = useRef(0)
  // The seq up to which the newest messages were requested.
  const asked = useRef(0)
  const [tries, tryAgain] = useReducer((count: number) => count + 1, 0)
  // Counts jumps: a page requested before a jump no longer fits.
  const jumps = useRef(0)
  const [news] = useState(() => bufferUpdates<MessageRecord>())
  // Counts the times when changes may have been missed.
  const resyncs = useRef(0)
  const put = useCallback((next: Window) => {
    now.current = next
    setWindow(next)
    setNewest((before) => Math.max(before, lastSeq(next)))
  }, [])

  const read = useCallback(
    async (place: { aroundSeq?: number; beforeSeq?: number; afterSeq?: number }, limit = PAGE) => {
      const variables = { orgId, conversationId, limit, ...place }
      const ask = async () => {
        const result = await readFresh(client, Messages, variables)
        setError(result.data?.messages ? undefined : result.error)
        failedAt.current = result.data?.messages ? 0 : Date.now()
        return result.data?.messages ?? null
      }
      // An answer requested before a missed change may predate it.
      for (;;) {
        const before = resyncs.current
        const found = await news.over(ask())
        if (!found || before === resyncs.current) return found
      }
    },
    [client, orgId, conversationId, news],
  )
  /** Loads one page at a time; ignored while one is loading. Resolves to whether it was requested. */
  const page = useCallback(
    (place: { beforeSeq?: number; afterSeq?: number }, join: typeof withOlder) => {
      // Do not repeat a refused request with each frame.
      if (busy.current || Date.now() - failedAt.current < RETRY_MS) return false
      busy.current = true
      const jump = jumps.current
      void read(place).then((found) => {
        busy.current = false
        if (!found) {
          asked.current = 0
          tryAgain()
        } else if (jump === jumps.current) put(join(now.current, found))
      })
      return true
    },
    [read, put],
  )
  const older = useCallback(() => {
    if (now.current.hasBefore) page({ beforeSeq: firstSeq(now.current) }, withOlder)
  }, [page])
  const newer = useCallback(() => {
    if (now.current.hasAfter) page({ afterSeq: lastSeq(now.current) }, withNewer)
  }, [page])
  const go = useCallback(
    async (seq?: number) => {
      const { messages, hasAfter } = now.current
      const isHere =
        seq === undefined ? messages.length > 0 && !hasAfter : messages.some((message) => message.seq === seq)
      if (isHere) return
      jumps.current += 1
      const jump = jumps.current
      const found = await read(seq === undefined ? {} : { aroundSeq: seq })
      // A later jump has moved elsewhere.
      if (jump !== jumps.current) return
      if (found) put(replaced(found))
      setLoading(false)
    },
    [read, put],
  )
  const take = useCallback(
    (message: MessageRecord, join: typeof withUpdate) => {
      setNewest((before) => Math.max(before, message.seq))
      const next = join(now.current, message)
      if (next) put(next)
    },
    [put],
  )
  const sent = useCallback((message: MessageRecord) => take(message, withAnswered), [take])
  const receive = useCallback(
    (message: MessageRecord) => {
      news.receive(message)
      take(message, withUpdate)
    },
    [take, news],
  )

  // Messages that arrived between reading and subscribing, or while a page was loading, are not reported: known missing
  // ones are read once.
  const wanted = Math.max(newest, known)
  // biome-ignore lint/correctness/useExhaustiveDependencies: `tries` allows another attempt
  useEffect(() => {
    if (loading || window.hasAfter || wanted <= lastSeq(window) || wanted === asked.current) return
    if (page({ afterSeq: lastSeq(window) }, withNewer)) {
      asked.current = wanted
      return
    }
    const timer = setTimeout(tryAgain, RETRY_MS)
    return () => clearTimeout(timer)
  }, [loading, window, wanted, page, tries])

  useEffect(() => {
    const unfollow = listen(client, MessageAdded, { orgId, conversationId }, ({ messageAdded }) =>
      receive(messageAdded),
    )
    let later: ReturnType<typeof setTimeout> | undefined
    let isGone = false
    // When changes may have been missed, reload the window until that succeeds.
    const again = async () => {
      clearTimeout(later)
      const { messages } = now.current
      if (messages.length === 0) return
      const jump = jumps.current
      const found = await read({ afterSeq: firstSeq(now.current) - 1 }, MAX_MESSAGES)
      if (isGone) return
      if (!found) later = setTimeout(again, RETRY_MS)
      else if (jump === jumps.current) put(refreshed(now.current, found))
    }
    const stop = onChange(
      () => false,
      () => {
        resyncs.current += 1
        void again()
      },
    )
    return () => {
      isGone = true
      clearTimeout(later)
      unfollow()
      stop()
    }
  }, [client, orgId, conversationId, receive, read, put])

  return useMemo(
    () => ({ window, loading: loading && !error, error, newest, older, newer, go, sent }),
    [window, loading, error, newest, older, newer, go, sent],
  )
}
