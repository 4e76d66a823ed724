import { expect, test } from 'vitest'
import type { MessageRecord } from '../../../app/thread/fields'
import {
  EMPTY,
  firstSeq,
  lastSeq,
  MAX_MESSAGES,
  refreshed,
  replaced,
  type Window,
  withAnswered,
  withNewer,
  withOlder,
  withUpdate,
} from './window'

const run = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, n) => ({ id: 1000 + from + n, seq: from + n }) as MessageRecord)
const page = (from: number, to: number, hasBefore = false, hasAfter = false) => ({
  data: run(from, to),
  hasBefore,
  hasAfter,
})

test('older ones come before, and what is too far below goes', () => {
  const window = withOlder(replaced(page(100, 100 + MAX_MESSAGES - 1, true)), page(50, 99, true))
  expect([firstSeq(window), lastSeq(window), window.messages.length]).toEqual([
    50,
    50 + MAX_MESSAGES - 1,
    MAX_MESSAGES,
  ])
  expect(window.hasAfter).toBe(true)
})

test('newer ones come behind, and what is too far above goes', () => {
  const window = withNewer(replaced(page(1, MAX_MESSAGES)), page(MAX_MESSAGES + 1, MAX_MESSAGES + 10))
  expect([firstSeq(window), lastSeq(window)]).toEqual([11, MAX_MESSAGES + 10])
  expect(window.hasBefore).toBe(true)
})

const sent = (status: string) => ({ id: 1004, seq: 4, status }) as MessageRecord
const statuses = (window: Window | null) => window?.messages.map(({ status }) => status).at(-1)

test('an update of one’s own message holds over the answer, whichever comes first', () => {
  const before = replaced(page(1, 3))
  const updated = withUpdate(before, sent('DELIVERED'))
  expect(statuses(updated && withAnswered(updated, sent('PENDING')))).toBe('DELIVERED')
  const answered = withAnswered(before, sent('PENDING'))
  expect(statuses(answered)).toBe('PENDING')
  expect(statuses(answered && withUpdate(answered, sent('DELIVERED')))).toBe('DELIVERED')
})

test('a message that has reached the agent does not wait again', () => {
  for (const status of ['DELIVERED', 'FAILED', 'CANCELLED']) {
    const updated = withUpdate(replaced(page(1, 3)), sent(status))
    expect(statuses(updated && withUpdate(updated, sent('PENDING')))).toBe(status)
  }
})

test('the next message is added once, even if it arrives twice', () => {
  const [next] = run(4, 4) as [MessageRecord]
  const once = withUpdate(replaced(page(1, 3)), next)
  expect(once && withUpdate(once, next)?.messages.map(({ seq }) => seq)).toEqual([1, 2, 3, 4])
})

test('a missing message is noticed', () => {
  expect(withUpdate(replaced(page(1, 3)), run(6, 6)[0] as MessageRecord)).toBeNull()
})

test('new messages are not added while reading further up', () => {
  const window = replaced(page(1, 3, false, true))
  expect(withUpdate(window, run(9, 9)[0] as MessageRecord)).toBe(window)
})

test('the first message of all is added to an empty thread', () => {
  expect(withUpdate(EMPTY, run(1, 1)[0] as MessageRecord)?.messages).toHaveLength(1)
})

test('what is read again takes nothing away from who reads further up', () => {
  const before = replaced(page(100, 159, true, true))
  // Older ones came while it was read.
  const window = withOlder(before, page(40, 99, true))
  const edited = { ...page(100, 299, true, true) }
  edited.data[0] = { ...edited.data[0], content: 'edited' } as MessageRecord
  const after = refreshed(window, edited)
  expect([firstSeq(after), lastSeq(after), after.hasBefore, after.hasAfter]).toEqual([40, 159, true, true])
  expect(after.messages.find(({ seq }) => seq === 100)?.content).toBe('edited')
})

test('at the end, what is read again brings what was missed', () => {
  const window = replaced(page(100, 159, true))
  const after = refreshed(window, page(100, 170, true))
  expect([firstSeq(after), lastSeq(after), after.hasAfter]).toEqual([100, 170, false])
  // More than one page was missed: the rest is read on the way down.
  expect(refreshed(window, page(100, 299, true, true)).hasAfter).toBe(true)
})
