// Start, stop, pause, resume and restart. The button's effect shows at once, as the service's first step; the answer
// then replaces it.
import { CirclePause, CirclePlay, CircleStop, type LucideIcon, Play } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { useClient } from 'urql'
import { wordsOf } from '../../api/errors'
import { graphql } from '../../api/graphql'
import { readFresh } from '../../api/requests'
import { useAct } from '../../api/use-act'
import { endsInWords } from '../../app/cut-words'
import { useOrg } from '../../app/organization'
import type { Governed } from '../../permissions/can'
import { Gate, useRefused } from '../../permissions/gate'
import { ActionButton } from '../../ui/actions'
import { IconButton } from '../../ui/button'
import { ConfirmDialog } from '../../ui/confirm'
import { sayProblem } from '../../ui/toast-store'
import { AFTER, type Step, stepsOf } from './words'

const Start = graphql(`
  mutation StartAgent($orgId: Id!, $id: Id!) {
    startAgent(orgId: $orgId, id: $id) { id status statusReason statusDetail lastAction lastActionAt restartPending restartReason restart { attempts nextAt } }
  }
`)
const Stop = graphql(`
  mutation StopAgent($orgId: Id!, $id: Id!) {
    stopAgent(orgId: $orgId, id: $id) { id status statusReason statusDetail lastAction lastActionAt restart { attempts nextAt } }
  }
`)
const Pause = graphql(`
  mutation PauseAgent($orgId: Id!, $id: Id!) {
    pauseAgent(orgId: $orgId, id: $id) { id status statusReason statusDetail lastAction lastActionAt }
  }
`)
const Resume = graphql(`
  mutation ResumeAgent($orgId: Id!, $id: Id!) {
    resumeAgent(orgId: $orgId, id: $id) { id status statusReason statusDetail lastAction lastActionAt }
  }
`)
const Restart = graphql(`
  mutation RestartAgent($orgId: Id!, $id: Id!) {
    restartAgent(orgId: $orgId, id: $id) { id status statusReason statusDetail lastAction lastActionAt restartPending restartReason }
  }
`)

const Ends = graphql(`
  query StopEnds($orgId: Id!, $id: Id!) {
    agent(orgId: $orgId, id: $id) { id waitingRequests runningTurns { id } }
  }
`)

type Runnable = Governed & { id: number; name: string; status: string; statusReason: string | null }

const STEPS: Record<Exclude<Step, 'restart'>, { label: string; icon: LucideIcon; tip: string }> = {
  start: { label: 'Start', icon: Play, tip: 'Starts the agent on its server' },
  stop: { label: 'Stop', icon: CircleStop, tip: 'Ends the agent’s work and its program' },
  pause: { label: 'Pause', icon: CirclePause, tip: 'The agent stays up; new work waits' },
  resume: { label: 'Resume', icon: CirclePlay, tip: 'Continues with waiting work' },
}

export interface Run {
  /** The state to show: optimistic until the service answers. */
  status: string
  /** A request is pending. */
  busy: boolean
  step: (step: Step) => void
  /** The question before a stop or restart that interrupts work. */
  question: ReactNode
}

export function useRun(agent: Runnable): Run {
  const { id: orgId } = useOrg()
  const acts = {
    start: useAct(Start),
    stop: useAct(Stop),
    pause: useAct(Pause),
    resume: useAct(Resume),
    restart: useAct(Restart),
  }
  const client = useClient()
  const [going, go] = useState<Step | null>(null)
  const [asked, ask] = useState<{ step: 'stop' | 'restart'; ends: string } | null>(null)
  const [looking, look] = useState(false)
  const act = async (next: Step) => {
    ask(null)
    if (going) return
    go(next)
    await acts[next]({ orgId, id: agent.id })
    go(null)
  }
  // Uses the service's current numbers, because the page's may be old.
  const step = async (next: Step) => {
    if (going || looking) return
    if (next !== 'stop' && next !== 'restart') return act(next)
    look(true)
    const { data, error } = await readFresh(client, Ends, { orgId, id: agent.id })
    look(false)
    if (error || !data?.agent) return sayProblem(wordsOf(error))
    const ends = endsInWords(data.agent.runningTurns.length, data.agent.waitingRequests)
    if (ends === null) return act(next)
    ask({ step: next, ends })
  }
  const verb = asked?.step === 'restart' ? 'Restart' : 'Stop'
  return {
    status: going ? AFTER[going] : agent.status,
    busy: going !== null || looking,
    step: (next) => void step(next),
    question: asked && (
      <ConfirmDialog
        open
        onClose={() => ask(null)}
        title={`${verb} ${agent.name}?`}
        action={verb}
        other={
          agent.status === 'RUNNING' ? { label: 'Pause instead', run: () => void act('pause') } : undefined
        }
        onConfirm={() => act(asked.step)}
      >
        This {asked.ends}. Approvals and conversations say that it was you.
      </ConfirmDialog>
    ),
  }
}

/** All available steps as buttons, for the page. */
export function RunButtons({ agent, run }: { agent: Runnable; run: Run }) {
  const refused = useRefused('agent.edit', agent)
  const buttons = stepsOf(run.status, agent.statusReason).map((step) => (
    <ActionButton
      key={step}
      look={step === 'start' || step === 'resume' ? 'primary' : 'secondary'}
      icon={STEPS[step].icon}
      tip={STEPS[step].tip}
      busy={run.busy}
      action={{
        id: `agent.${step}.${agent.id}`,
        label: `${STEPS[step].label} the agent`,
        group: 'Agent',
        refused,
        run: () => run.step(step),
      }}
    >
      {STEPS[step].label}
    </ActionButton>
  ))
  return (
    <>
      {buttons}
      {run.question}
    </>
  )
}

/** The most likely step, for a row. */
export function RunInRow({ agent, run }: { agent: Runnable; run: Run }) {
  const steps = stepsOf(run.status, agent.statusReason)
  const step = steps.includes('stop') && !steps.includes('resume') ? 'stop' : steps[0]
  if (!step) return null
  return (
    <Gate on={agent} may="agent.edit">
      <IconButton
        size="sm"
        icon={STEPS[step].icon}
        label={`${STEPS[step].label} ${agent.name}`}
        busy={run.busy}
        onClick={() => run.step(step)}
      />
      {run.question}
    </Gate>
  )
}
