// Search parameters of the conversations' pages.
import { flag, id, one, searchOf, some, text } from '../../app/search'

export const conversationsSearch = searchOf({
  q: text,
  status: some('OPEN', 'PENDING', 'RESOLVED', 'ARCHIVED'),
  agent: id,
  channel: id,
  contact: id,
  mine: flag,
  unread: flag,
  waiting: flag,
  undelivered: flag,
  takenOver: flag,
  from: text,
  to: text,
  peek: id,
  open: one('new'),
  tab: one('names', 'said'),
})

/** `seq`: the message to open at. `q`: the text to find. */
export const conversationSearch = searchOf({ seq: id, q: text, panel: one('details', 'turns') })

export type ConversationsSearch = ReturnType<typeof conversationsSearch>
