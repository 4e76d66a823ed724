// Search parameters of the agents' pages.
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
export const LOG_SOURCES = ['STDERR', 'LAUNCH', 'GATE', 'MCP'] as const

export const agentsSearch = searchOf({
  q: text,
  status: some(...AGENT_STATUSES),
  server: id,
  sort: one('NAME', 'STATUS', 'ACTIVITY', 'CREATED'),
  order: one('asc', 'desc'),
  peek: id,
  open: one('new'),
  tab: one('images'),
  /** Images: includes archived ones. */
  archived: one('true'),
})

export const agentSearch = searchOf({
  tab: one('turns', 'logs', 'settings', 'revisions', 'launches', 'backups'),
  /** Turns: the state filter, the page, and the turn open beside the list. */
  state: one(...TURN_STATES),
  page: id,
  turn: id,
  /** Logs: the source filter. */
  source: one(...LOG_SOURCES),
  /** Revisions: the one shown, and the one it is compared with. */
  revision: id,
  against: id,
})
