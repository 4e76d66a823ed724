// Starting, stopping, pausing and resuming. What is pressed shows at once as the step that the service makes first; its
// answer then says what is true.
import { CirclePause, CirclePlay, CircleStop, type LucideIcon, Play } from 'lucide-react'
import { useEffect, useState } from 'react'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useOrg } from '../../app/organization'
import type { Governed } from '../../permissions/can'
import { Gate, useRefused } from '../../permissions/gate'
import { ActionButton } from '../../ui/actions'
import { IconButton } from '../../ui/button'
import { AFTER, type Step, stepsOf } from './words'

const Start = graphql(`
  mutation StartAgent($orgId: Id!, $id: Id!) {
    startAgent(orgId: $orgId, id: $id) { id status statusReason statusDetail lastAction lastActionAt restartPending restartReason }
  }
`)
const Stop = graphql(`
  mutation StopAgent($orgId: Id!, $id: Id!) {
    stopAgent(orgId: $orgId, id: $id) { id status statusReason statusDetail lastAction lastActionAt }
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

type Runnable = Governed & { id: number; name: string; status: string }

const STEPS: Record<Step, { label: string; icon: LucideIcon; tip: string }> = {
  start: { label: 'Start', icon: Play, tip: 'Launches it on its server' },
  stop: { label: 'Stop', icon: CircleStop, tip: 'Ends its work and its program' },
  pause: { label: 'Pause', icon: CirclePause, tip: 'Keeps it up; new work waits' },
  resume: { label: 'Resume', icon: CirclePlay, tip: 'Takes up what has waited' },
}

export interface Run {
  /** The state to show: what was pressed last, until the service has answered. */
  status: string
  /** Something is on its way to the service. */
  busy: boolean
  /** Answers whether the service has made it. */
  step: (step: Step) => Promise<boolean>
  /** Stops it and, once it is down, starts it again. */
  restart: () => Promise<void>
  restarting: boolean
}

export function useRun(agent: Runnable): Run {
  const { id: orgId } = useOrg()
  const acts = { start: useAct(Start), stop: useAct(Stop), pause: useAct(Pause), resume: useAct(Resume) }
  const [going, go] = useState<Step | null>(null)
  const [restarting, setRestarting] = useState(false)
  const step = async (next: Step) => {
    if (going) return false
    go(next)
    const { error } = await acts[next]({ orgId, id: agent.id })
    go(null)
    return !error
  }
  const isDown = agent.status === 'STOPPED' || agent.status === 'ERROR'
  // biome-ignore lint/correctness/useExhaustiveDependencies: only its state starts the second half
  useEffect(() => {
    if (!restarting || going || !isDown) return
    setRestarting(false)
    void step('start')
  }, [restarting, going, isDown])
  return {
    status: going ? AFTER[going] : agent.status,
    busy: going !== null,
    step,
    restart: async () => {
      setRestarting(true)
      // An agent that somebody stops later, on purpose, must not start again.
      if (!isDown && !(await step('stop'))) setRestarting(false)
    },
    restarting,
  }
}

/** What can be done now, as buttons: the page's. */
export function RunButtons({ agent, run }: { agent: Runnable; run: Run }) {
  const refused = useRefused('agent.edit', agent)
  if (run.restarting) return <span className="text-sm text-muted">Starts again as soon as it is down.</span>
  return stepsOf(run.status).map((step) => (
    <ActionButton
      key={step}
      look={step === 'start' || step === 'resume' ? 'primary' : 'secondary'}
      icon={STEPS[step].icon}
      tip={STEPS[step].tip}
      busy={run.busy}
      action={{
        id: `agent.${step}`,
        label: `${STEPS[step].label} the agent`,
        group: 'Agent',
        refused,
        run: () => void run.step(step),
      }}
    >
      {STEPS[step].label}
    </ActionButton>
  ))
}

/** The same in a row: the first thing that one would do. */
export function RunInRow({ agent, run }: { agent: Runnable; run: Run }) {
  const steps = stepsOf(run.status)
  const step = steps.includes('stop') && !steps.includes('resume') ? 'stop' : steps[0]
  if (!step) return null
  return (
    <Gate on={agent} may="agent.edit">
      <IconButton
        size="sm"
        icon={STEPS[step].icon}
        label={`${STEPS[step].label} ${agent.name}`}
        busy={run.busy}
        onClick={() => void run.step(step)}
      />
    </Gate>
  )
}
