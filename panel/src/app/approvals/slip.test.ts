import { expect, test } from 'vitest'
import { isSlip } from './slip'

const press = { clicks: 1, now: 10_000, shownAt: 1_000, decidedAt: null }

test('a click on a form decides at once when nothing was decided before', () => {
  expect(isSlip(press)).toBe(false)
  expect(isSlip({ ...press, shownAt: 9_990 })).toBe(false)
})

test('the second click of a double click decides nothing', () => {
  expect(isSlip({ ...press, clicks: 2 })).toBe(true)
})

test('a form that comes up after a decision takes no click for half a second', () => {
  expect(isSlip({ ...press, decidedAt: 9_600, shownAt: 9_601 })).toBe(true)
  expect(isSlip({ ...press, decidedAt: 8_600, shownAt: 9_601 })).toBe(true)
  expect(isSlip({ ...press, decidedAt: 9_400, shownAt: 9_401 })).toBe(false)
})

test('a key that is tapped again decides nothing about the approval that the list moved on to', () => {
  const key = { ...press, clicks: 0 }
  expect(isSlip({ ...key, decidedAt: 9_940, shownAt: 9_941 })).toBe(true)
  expect(isSlip({ ...key, decidedAt: 9_301 })).toBe(true)
  expect(isSlip({ ...key, decidedAt: 9_300 })).toBe(false)
  expect(isSlip({ ...key, decidedAt: null })).toBe(false)
})
