import { expect, test } from 'vitest'
import { dayIn, daysInMonth, daysOf, listed } from './period'

test('a day is that of the organization', () => {
  const now = Date.parse('2026-06-30T23:30:00Z')
  expect(dayIn('UTC', now)).toBe('2026-06-30')
  expect(dayIn('Asia/Tokyo', now)).toBe('2026-07-01')
})

test('periods end today, or with the last month', () => {
  expect(daysOf('DAYS_30', '2026-03-01')).toEqual({ since: '2026-01-31', before: '2026-03-02' })
  expect(listed(daysOf('DAYS_30', '2026-03-01'))).toHaveLength(30)
  expect(listed(daysOf('DAYS_90', '2026-10-26'))).toHaveLength(90)
  expect(daysOf('MONTH', '2026-03-01')).toEqual({ since: '2026-03-01', before: '2026-03-02' })
  expect(daysOf('LAST_MONTH', '2026-01-31')).toEqual({ since: '2025-12-01', before: '2026-01-01' })
  expect(listed({ since: '2026-02-27', before: '2026-03-02' })).toEqual([
    '2026-02-27',
    '2026-02-28',
    '2026-03-01',
  ])
})

test('a month has its number of days', () => {
  expect(['2026-02-10', '2028-02-01', '2026-12-31'].map(daysInMonth)).toEqual([28, 29, 31])
})
