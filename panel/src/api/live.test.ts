import { expect, test, vi } from 'vitest'
import { concerns, paced } from './live'

test('a view is called for changes of its kinds, and whenever some may have been missed', () => {
  expect(concerns(['AGENT'], { kind: 'AGENT', id: 1, op: 'UPDATED' })).toBe(true)
  expect(concerns(['AGENT'], { kind: 'SERVER', id: 1, op: 'UPDATED' })).toBe(false)
  expect(concerns(['AGENT'], { kind: null, id: null, op: 'RESYNC' })).toBe(true)
  expect(concerns(({ id }) => id === 2, { kind: 'SERVER', id: 2, op: 'DELETED' })).toBe(true)
})

test('paced work runs at once, never twice at once, and once more for all that was asked meanwhile', async () => {
  vi.useFakeTimers()
  let runs = 0
  const { ask, stop } = paced(async () => {
    runs += 1
    return true
  }, 100)
  ask()
  expect(runs).toBe(1)
  ask()
  ask()
  expect(runs).toBe(1)
  await vi.advanceTimersByTimeAsync(100)
  expect(runs).toBe(2)
  await vi.advanceTimersByTimeAsync(1000)
  expect(runs).toBe(2)
  ask()
  ask()
  stop()
  await vi.advanceTimersByTimeAsync(1000)
  expect(runs).toBe(3)
  vi.useRealTimers()
})

test('work that could not be done is tried again, at once when it is asked for', async () => {
  vi.useFakeTimers()
  let runs = 0
  const { ask } = paced(async () => {
    runs += 1
    return runs === 3
  }, 100)
  ask()
  await vi.advanceTimersByTimeAsync(5_000)
  expect(runs).toBe(1)
  await vi.advanceTimersByTimeAsync(200)
  expect(runs).toBe(2)
  ask()
  await vi.advanceTimersByTimeAsync(0)
  expect(runs).toBe(3)
  await vi.advanceTimersByTimeAsync(20_000)
  expect(runs).toBe(3)
  vi.useRealTimers()
})
