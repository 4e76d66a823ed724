// Texts about agents' states and permissions. No React here.

import { dated } from '../../ui/time-format'

export { stateInWords } from '../../app/agent-state'

/** The exit of a launch, and the rest of its detail: the cause, or the program's last output. */
export function detailOf(detail: string | null): { exit: string | null; more: string | null } {
  const text = detail?.trim() ?? ''
  // The service's own first line, which `stateInWords` says better: "its program ended by itself (code 3)".
  const [line = ''] = /^(?:its? |the host's )[^\n]*/.exec(text) ?? []
  const [, kind, number] = /\((code|signal) (-?\d+)\)$/.exec(line) ?? []
  return {
    exit: kind ? `${kind === 'code' ? 'Exit code' : 'Signal'} ${number}` : null,
    more: text.slice(line.length).trim() || null,
  }
}

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

/** Turns have no names, and are numbered across all agents. */
export const turnName = ({ createdAt }: { createdAt: string }, timeZone: string | undefined): string =>
  `Turn of ${dated(Date.parse(createdAt), timeZone)}`

export const CAUSES: Record<string, string> = {
  AGENT: 'Another agent',
  API: 'A program',
  CHANNEL: 'A channel',
  PANEL: 'The panel',
  SCHEDULE: 'A schedule',
  SYSTEM: 'Muster',
}

/** How much of a text's bound is used. */
export const countInWords = (text: string, most = 0): string =>
  `${[...text].length.toLocaleString()} of ${most.toLocaleString()} characters.`

/** The defaults for agents without their own thresholds (docs/approvals.md). */
export const DEFAULTS = { ask: 40, block: 90 }

/** A risk threshold in words. */
export function riskInWords(threshold: number | null, kind: 'ask' | 'block'): string {
  if (threshold === null) return `Nothing set: the default of ${DEFAULTS[kind]} applies.`
  if (Number.isNaN(threshold)) return ''
  if (threshold === 0) return kind === 'ask' ? 'Asks before every action.' : 'Every action is blocked.'
  if (threshold >= 100)
    return kind === 'ask' ? 'Asks only at the highest risk.' : 'Only the highest risk is blocked.'
  const level =
    threshold <= 20 ? 'small' : threshold <= 50 ? 'medium' : threshold <= 80 ? 'high' : 'very high'
  return kind === 'ask'
    ? `Asks if the risk is ${level} or higher.`
    : `Blocks actions if the risk is ${level} or higher.`
}
