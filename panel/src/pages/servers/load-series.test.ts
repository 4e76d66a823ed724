import { expect, test } from 'vitest'
import { partsOf, pathOf, type Step } from './load-series'

const step = (from: number, value: number | null): Step => ({ from, to: from + 5, value })
const same = (value: number) => value

test('a missing period is a gap', () => {
  const steps = [step(0, 1), step(5, 2), step(15, 3)]
  expect(partsOf(steps)).toEqual([[steps[0], steps[1]], [steps[2]]])
  expect(pathOf(steps, same, same)).toBe('M0,1V1H5V2H10M15,3V3H20')
})

test('a period without a value is a gap, and never zero', () => {
  expect(pathOf([step(0, 7), step(5, null), step(10, 8)], same, same)).toBe('M0,7V7H5M10,8V8H15')
  expect(pathOf([step(0, null)], same, same)).toBe('')
  expect(pathOf([], same, same)).toBe('')
})

test('a measured zero is a line', () => {
  expect(pathOf([step(0, 0), step(5, 1)], same, same)).toBe('M0,0V0H5V1H10')
})
