// Search parameters of plain list and detail pages.
import { flag, id, one, searchOf, text } from '../app/search'

export const listSearch = searchOf({
  q: text,
  sort: one('CREATED', 'NAME'),
  archived: flag,
  agent: id,
  /** Servers in this state. */
  status: one('ONLINE', 'OFFLINE', 'PENDING', 'DEGRADED'),
  /** Channels that carry no messages. */
  inactive: flag,
  peek: id,
  page: id,
  /** `new`: the creation form is open. */
  open: one('new'),
  tab: text,
})

export const contactsSearch = searchOf({
  q: text,
  sort: one('CREATED', 'NAME'),
  channel: id,
  peek: id,
  page: id,
})

export const tabSearch = searchOf({ tab: text, open: text })
