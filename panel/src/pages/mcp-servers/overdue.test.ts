import { expect, test } from 'vitest'
import { isOverdue } from './overdue'

test('a test without an answer is overdue after a minute', () => {
  const asked = '2026-01-01T00:00:00.000Z'
  const after = (seconds: number) => isOverdue(asked, Date.parse(asked) + seconds * 1000)
  expect([after(-5), after(0), after(60), after(61)]).toEqual([false, false, false, true])
})
