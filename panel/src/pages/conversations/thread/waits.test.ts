import { expect, test } from 'vitest'
import type { MessageRecord } from '../../../app/thread/fields'
import { begunTurns, isWaiting } from './waits'

const message = (turnId: number | null, role = 'USER', status = 'PENDING') =>
  ({ turnId, role, status }) as MessageRecord

test('a message waits until its turn is under way', () => {
  const open = (state: string) => [{ id: 7, state }]
  expect(isWaiting(message(7), begunTurns([], open('QUEUED')))).toBe(true)
  expect(isWaiting(message(7), begunTurns([], open('RUNNING')))).toBe(false)
  expect(isWaiting(message(7), begunTurns([], open('WAITING_APPROVAL')))).toBe(false)
})

test('a message whose turn has an answer does not wait, and the next one does', () => {
  const begun = begunTurns([message(7), message(7, 'ASSISTANT', 'DELIVERED'), message(8)], [])
  expect([isWaiting(message(7), begun), isWaiting(message(8), begun)]).toEqual([false, true])
})

test('only what people wrote waits, and only until it is delivered', () => {
  const none = new Set<number>()
  expect(isWaiting(message(null), none)).toBe(true)
  expect(isWaiting(message(null, 'ASSISTANT'), none)).toBe(false)
  expect(isWaiting(message(null, 'USER', 'DELIVERED'), none)).toBe(false)
})
