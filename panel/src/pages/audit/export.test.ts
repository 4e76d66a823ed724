import { expect, test } from 'vitest'
import { exportPath, periodOf } from './export'

const NOW = Date.UTC(2026, 10, 22, 12)
const none = { first: '', last: '' }

test('a period counts back from now, or is all, or what the page shows', () => {
  expect(periodOf('DAY', {}, none, NOW)).toEqual({ from: '2026-11-21T12:00:00.000Z' })
  expect(periodOf('ALL', { from: 'x' }, none, NOW)).toEqual({})
  expect(periodOf('SHOWN', { from: 'x', to: 'y' }, none, NOW)).toEqual({ from: 'x', to: 'y' })
})

test('dates include the last day, and may be open', () => {
  const { from, to } = periodOf('DATES', {}, { first: '2026-11-20', last: '2026-11-21' }, NOW)
  expect(from).toBe(new Date(2026, 10, 20).toISOString())
  expect(to).toBe(new Date(2026, 10, 22).toISOString())
  expect(periodOf('DATES', {}, { first: '', last: '2026-11-21' }, NOW).from).toBeUndefined()
})

test('the address has only what is limited', () => {
  expect(exportPath(7, {})).toBe('/export/audit/7')
  expect(exportPath(7, { from: '2026-11-20T00:00:00.000Z' })).toBe(
    '/export/audit/7?from=2026-11-20T00%3A00%3A00.000Z',
  )
})
