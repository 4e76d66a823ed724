// What the addresses of the agents' pages carry.
import { id, one, searchOf, some, text } from '../../app/search'

export const AGENT_STATUSES = ['RUNNING', 'SPAWNING', 'PAUSED', 'STOPPING', 'STOPPED', 'ERROR'] as const
export const TURN_STATES = [
  'QUEUED',
  'RUNNING',
  'WAITING_APPROVAL',
  'WAITING_LIMIT',
  'DONE',
  'FAILED',
  'CANCELLED',
  'INTERRUPTED',
] as const

export const agentsSearch = searchOf({
  q: text,
  status: some(...AGENT_STATUSES),
  server: id,
  sort: one('NAME', 'STATUS', 'ACTIVITY', 'CREATED'),
  order: one('asc', 'desc'),
  peek: id,
  open: one('new'),
  tab: one('images'),
  /** Images: archived ones too. */
  archived: one('true'),
})

export const agentSearch = searchOf({
  tab: one('turns', 'settings', 'revisions', 'launches', 'backups'),
  /** Turns: only in this state, this page of them, and the one that is open beside. */
  state: one(...TURN_STATES),
  page: id,
  turn: id,
  /** Revisions: the one that is looked at, and the one it is compared with. */
  revision: id,
  against: id,
})
