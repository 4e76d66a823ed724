// Texts about agents' states and permissions. No React here.

export { stateInWords } from '../../app/agent-state'

export type Step = 'start' | 'stop' | 'pause' | 'resume' | 'restart'

/** The available steps. A restarting agent can be stopped to keep it down. */
export function stepsOf(status: string, reason: string | null): Exclude<Step, 'restart'>[] {
  switch (status) {
    case 'STOPPED':
    case 'ERROR':
      return ['start']
    case 'SPAWNING':
      return ['stop']
    case 'RUNNING':
      return ['pause', 'stop']
    case 'PAUSED':
      return ['resume', 'stop']
    case 'STOPPING':
      return reason === 'RESTARTING' ? ['stop'] : []
    default:
      return []
  }
}

/** The state directly after a step, as in the service's answer. */
export const AFTER: Record<Step, string> = {
  start: 'SPAWNING',
  stop: 'STOPPING',
  pause: 'PAUSED',
  resume: 'RUNNING',
  restart: 'STOPPING',
}

export const CAUSES: Record<string, string> = {
  AGENT: 'Another agent',
  API: 'A program',
  CHANNEL: 'A channel',
  PANEL: 'The panel',
  SCHEDULE: 'A schedule',
  SYSTEM: 'Muster',
}

/** Millionths of the currency as a readable number: `0.0123`. Null if unknown. */
export function costOf(micro: string | null | undefined): string | null {
  if (micro === null || micro === undefined) return null
  const value = Number(micro) / 1_000_000
  if (!Number.isFinite(value)) return null
  return value.toLocaleString(undefined, {
    minimumFractionDigits: 2,
    maximumFractionDigits: value < 1 ? 4 : 2,
  })
}

/** The defaults for agents without their own thresholds (docs/approvals.md). */
export const DEFAULTS = { ask: 40, block: 90 }

/** A risk threshold in words. */
export function riskInWords(threshold: number | null, kind: 'ask' | 'block'): string {
  const does = kind === 'ask' ? 'asks' : 'is blocked'
  if (threshold === null) return `Nothing set: the default of ${DEFAULTS[kind]} applies.`
  if (Number.isNaN(threshold)) return ''
  if (threshold === 0) return kind === 'ask' ? 'Asks before every action.' : 'Every action is blocked.'
  if (threshold >= 100)
    return kind === 'ask' ? 'Asks only at the highest risk.' : 'Only the highest risk is blocked.'
  const level =
    threshold <= 20 ? 'small' : threshold <= 50 ? 'medium' : threshold <= 80 ? 'high' : 'very high'
  return `From a ${level} risk on it ${does}.`
}
