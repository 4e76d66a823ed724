// Search parameters of the approvals' pages.
import { flag, id, one, searchOf, some, text } from '../../app/search'

export const approvalsSearch = searchOf({
  tab: one('decisions', 'alerts', 'all'),
  q: text,
  status: some('PENDING', 'RESOLVED', 'DISMISSED', 'EXPIRED'),
  kind: some(
    'ACTION',
    'QUESTION',
    'ACCESS_REQUEST',
    'AUTH_REQUIRED',
    'CHANNEL_ERROR',
    'COST_GUARD',
    'SERVER_ALERT',
  ),
  severity: one('LOW', 'MEDIUM', 'HIGH', 'CRITICAL'),
  agent: id,
  conversation: id,
  assignee: id,
  mine: flag,
  snoozed: flag,
  sort: one('RISK', 'EXPIRES', 'CREATED'),
  peek: id,
})

export const approvalSearch = searchOf({ seq: id })

export type ApprovalsSearch = ReturnType<typeof approvalsSearch>
