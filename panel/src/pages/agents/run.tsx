// Starting, stopping, pausing, resuming and restarting. What is pressed shows at once as the step that the service makes
// first; its answer then says what is true.
import { CirclePause, CirclePlay, CircleStop, type LucideIcon, Play } from 'lucide-react'
import { useState } from 'react'
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

type Runnable = Governed & { id: number; name: string; status: string; statusReason: string | null }

const STEPS: Record<Exclude<Step, 'restart'>, { label: string; icon: LucideIcon; tip: string }> = {
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
  step: (step: Step) => void
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
  const [going, go] = useState<Step | null>(null)
  const step = async (next: Step) => {
    if (going) return
    go(next)
    await acts[next]({ orgId, id: agent.id })
    go(null)
  }
  return {
    status: going ? AFTER[going] : agent.status,
    busy: going !== null,
    step: (next) => void step(next),
  }
}

/** What can be done now, as buttons: the page's. */
export function RunButtons({ agent, run }: { agent: Runnable; run: Run }) {
  const refused = useRefused('agent.edit', agent)
  return stepsOf(run.status, agent.statusReason).map((step) => (
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
        run: () => run.step(step),
      }}
    >
      {STEPS[step].label}
    </ActionButton>
  ))
}

/** The same in a row: the first thing that one would do. */
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
    </Gate>
  )
}
