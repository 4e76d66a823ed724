// Follows an agent's log while the page is open.
import { useEffect, useState } from 'react'
import { useClient } from 'urql'
import { graphql } from '../../../api/graphql'
import { listen } from '../../../api/listen'
import { type Batch, EMPTY, type Log, withBatch } from './log'

const AgentLogs = graphql(`
  subscription AgentLogs($orgId: Id!, $id: Id!) {
    agentLogs(orgId: $orgId, id: $id) { begunAt position lines { source text time } }
  }
`)

/** `isRefused`: the viewer may not read it. */
export function useLog(orgId: number, id: number): { log: Log; isRefused: boolean } {
  const client = useClient()
  const [log, setLog] = useState(EMPTY)
  const [isRefused, setRefused] = useState(false)
  useEffect(() => {
    let waiting: Batch[] = []
    let frame = 0
    // Batches arrive faster than anyone reads: update once per frame.
    const show = () => {
      frame = 0
      const batches = waiting
      waiting = []
      setLog((before) => batches.reduce(withBatch, before))
    }
    const stop = listen(
      client,
      AgentLogs,
      { orgId, id },
      ({ agentLogs }) => {
        setRefused(false)
        waiting.push(agentLogs)
        frame ||= requestAnimationFrame(show)
      },
      () => setRefused(true),
    )
    return () => {
      cancelAnimationFrame(frame)
      stop()
      setLog(EMPTY)
    }
  }, [client, orgId, id])
  return { log, isRefused }
}
