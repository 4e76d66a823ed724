// Search parameters of the policies.
import { flag, id, one, searchOf, text } from '../../app/search'

export const policiesSearch = searchOf({
  tab: text,
  q: text,
  role: one('OWNER', 'ADMIN', 'OPERATOR', 'VIEWER', 'service_token'),
  /** Only what differs from the general rules. */
  own: flag,
  /** Only what no recent call needed. */
  never: flag,
  /** The member whose permissions are explained. */
  member: id,
  peek: id,
  against: id,
  page: id,
})
