// Search parameters of the audit log.
import { id, one, searchOf, text } from '../../app/search'

export const auditSearch = searchOf({
  q: text,
  actor: id,
  actorKind: one('USER', 'SERVICE_TOKEN', 'SYSTEM', 'ANONYMOUS'),
  operation: text,
  permission: text,
  outcome: text,
  target: id,
  targetKind: text,
  from: text,
  to: text,
  page: id,
  entry: id,
})
