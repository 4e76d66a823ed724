import { expect, test } from 'vitest'
import type { MessageRecord } from '../../../app/thread/fields'
import { begunTurns, waits } from './waits'

const message = (turnId: number | null, role = 'USER', status = 'PENDING') =>
  ({ turnId, role, status }) as MessageRecord

test('a message waits until its turn is under way', () => {
  const open = (state: string) => [{ id: 7, state }]
  expect(waits(message(7), begunTurns([], open('QUEUED')))).toBe(true)
  expect(waits(message(7), begunTurns([], open('RUNNING')))).toBe(false)
  expect(waits(message(7), begunTurns([], open('WAITING_APPROVAL')))).toBe(false)
})

test('a message whose turn has an answer does not wait, and the next one does', () => {
  const begun = begunTurns([message(7), message(7, 'ASSISTANT', 'DELIVERED'), message(8)], [])
  expect([waits(message(7), begun), waits(message(8), begun)]).toEqual([false, true])
})

test('only what people wrote waits, and only until it is delivered', () => {
  const none = new Set<number>()
  expect(waits(message(null), none)).toBe(true)
  expect(waits(message(null, 'ASSISTANT'), none)).toBe(false)
  expect(waits(message(null, 'USER', 'DELIVERED'), none)).toBe(false)
})
