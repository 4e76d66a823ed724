// What a text would change if it were in force: asked from the service when typing pauses.
import { useEffect, useState } from 'react'
import { useClient } from 'urql'
import { wordsOf } from '../../api/errors'
import { useOrg } from '../../app/organization'
import { type Proposal, ProposeQuery, SimulateQuery, type Simulation } from './queries'

const WAIT_MS = 300
/** The days whose calls are replayed. */
export const DAYS = 14

export interface Proposed {
  /** The text that the answer is about: an earlier one while the next answer is pending. */
  text: string
  proposal: Proposal
  /** Null while it is pending, and for texts that would be refused. */
  replay: Simulation | null
}

export interface Proposing {
  proposed: Proposed | null
  /** Why the answer is missing. */
  problem: string | null
  retry: () => void
}

/** `version` is the one in force, which the text is compared with. Without a text nothing is asked. */
export function useProposal(text: string | null, version: string): Proposing {
  const { id: orgId } = useOrg()
  const client = useClient()
  const [proposed, setProposed] = useState<Proposed | null>(null)
  const [problem, setProblem] = useState<string | null>(null)
  const [attempt, setAttempt] = useState(0)
  // biome-ignore lint/correctness/useExhaustiveDependencies: `version` and `attempt` make it ask again
  useEffect(() => {
    setProblem(null)
    if (text === null) return setProposed(null)
    let isStale = false
    const fresh = { requestPolicy: 'network-only' } as const
    const ask = async () => {
      const { data, error } = await client.query(ProposeQuery, { orgId, text }, fresh).toPromise()
      if (isStale) return
      const proposal = data?.proposePolicy
      if (!proposal) return setProblem(wordsOf(error))
      setProposed({ text, proposal, replay: null })
      if (!proposal.ok) return
      const simulated = await client.query(SimulateQuery, { orgId, text, days: DAYS }, fresh).toPromise()
      if (isStale) return
      const replay = simulated.data?.simulatePolicy
      if (replay) setProposed({ text, proposal, replay })
      else setProblem(wordsOf(simulated.error))
    }
    const timer = setTimeout(() => void ask(), WAIT_MS)
    return () => {
      isStale = true
      clearTimeout(timer)
    }
  }, [client, orgId, text, version, attempt])
  return { proposed, problem, retry: () => setAttempt((before) => before + 1) }
}
