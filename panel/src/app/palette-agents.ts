// Actions of found agents: "stop marlow". Changes run on the agent's page, which knows its state.
import type { useNavigate } from '@tanstack/react-router'
import { actionsNow, onActions, runAction } from '../keys/registry'
import { sayProblem } from '../ui/toast-store'
import type { Hit } from './palette-hits'
import { kindWords, type Verb, withName } from './palette-words'

/** The page offers its actions once it has read the agent. An action that is still missing is not possible. */
const WAITS_MS = 5_000

const ACTIONS: Record<Exclude<Verb, 'settings of'>, string> = {
  start: 'start',
  stop: 'stop',
  pause: 'pause',
  resume: 'resume',
  'talk to': 'talk',
}

export function agentLines(verb: Verb, hits: readonly Hit[], navigate: ReturnType<typeof useNavigate>) {
  return hits
    .filter(({ kind }) => kind === 'AGENT')
    .map(({ id, name, link }) => ({
      id: `${verb}:${id}`,
      label: withName(verb, name),
      group: kindWords('AGENT'),
      isFound: true,
      run: async () => {
        if (verb === 'settings of') return navigate({ ...link, search: { tab: 'settings' } } as never)
        await navigate(link as never)
        runOnceOffered(`agent.${ACTIONS[verb]}.${id}`, `“${withName(verb, name)}” is not possible now.`)
      },
    }))
}

function runOnceOffered(id: string, problem: string): void {
  const run = () => {
    const action = actionsNow().find((each) => each.id === id)
    if (!action) return
    stop()
    runAction(action)
  }
  const timer = setTimeout(() => {
    stop()
    sayProblem(problem)
  }, WAITS_MS)
  const unfollow = onActions(run)
  const stop = () => {
    clearTimeout(timer)
    unfollow()
  }
  run()
}
