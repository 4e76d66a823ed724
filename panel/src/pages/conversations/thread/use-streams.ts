// The messages that the agent is writing.
import { useEffect, useRef, useState } from 'react'
import { useClient } from 'urql'
import { graphql } from '../../../api/graphql'
import { listen } from '../../../api/listen'
import type { MessageRecord } from '../../../app/thread/fields'
import { type Delta, type Streams, withDelta, without } from './streams'

const Deltas = graphql(`
  subscription ThreadDeltas($orgId: Id!, $conversationId: Id!) {
    messageDeltas(orgId: $orgId, conversationId: $conversationId) { message offset text thinking }
  }
`)

const NONE: Streams = new Map()

/** `isWorking`: a turn is running. Otherwise, unfinished streams will never complete. */
export function useStreams(
  orgId: number,
  conversationId: number,
  messages: MessageRecord[],
  isWorking: boolean,
): Streams {
  const client = useClient()
  const [streams, setStreams] = useState<Streams>(NONE)
  const done = useRef(new Set<string>())

  useEffect(() => {
    let waiting: Delta[] = []
    let frame = 0
    // Deltas arrive faster than anyone reads: update once per frame.
    const show = () => {
      frame = 0
      const pieces = waiting.filter(({ message }) => !done.current.has(message))
      waiting = []
      setStreams((before) => pieces.reduce(withDelta, before))
    }
    const stop = listen(client, Deltas, { orgId, conversationId }, ({ messageDeltas }) => {
      waiting.push(messageDeltas)
      frame ||= requestAnimationFrame(show)
    })
    return () => {
      cancelAnimationFrame(frame)
      stop()
      setStreams(NONE)
    }
  }, [client, orgId, conversationId])

  useEffect(() => {
    const keys = messages.map(({ hostKey }) => hostKey)
    for (const key of keys) if (key) done.current.add(key)
    setStreams((before) => without(before, keys))
  }, [messages])
  useEffect(() => {
    if (isWorking) return
    const timer = setTimeout(() => setStreams(NONE), 2_000)
    return () => clearTimeout(timer)
  }, [isWorking])
  return streams
}
