// What the address of the audit log carries.
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
