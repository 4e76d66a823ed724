import { expect, test } from 'vitest'
import { clock, dated, duration, relative, stamp, wholeSeconds } from './time-format'

const NOON = Date.UTC(2026, 10, 22, 12, 0, 0)
const MINUTE = 60_000

test('near times are relative to now, in both directions', () => {
  expect(relative(NOON - 3 * MINUTE, NOON, 'en')).toBe('3 minutes ago')
  expect(relative(NOON + 120 * MINUTE, NOON, 'en')).toBe('in 2 hours')
  expect(relative(NOON - 4_000, NOON, 'en')).toBe('just now')
  expect(relative(NOON - 40_000, NOON, 'en')).toBe('40 seconds ago')
  expect(relative(NOON - 25 * 60 * MINUTE, NOON, 'en')).toBe('1 day ago')
})

test('days are counted, not named: 40 hours ago may be the day before yesterday', () => {
  expect(relative(NOON - 40 * 60 * MINUTE, NOON, 'en')).toBe('1 day ago')
  expect(relative(NOON + 47 * 60 * MINUTE, NOON, 'en')).toBe('in 1 day')
  expect(relative(NOON - 50 * 24 * 60 * MINUTE, NOON, 'en')).toBe('1 month ago')
})

test('a time that was just set is not a unit short', () => {
  const DAY = 24 * 60 * MINUTE
  expect(relative(NOON + 365 * DAY - 2_000, NOON, 'en')).toBe('in 1 year')
  expect(relative(NOON + 7 * DAY - 2_000, NOON, 'en')).toBe('in 1 week')
  expect(relative(NOON + 30 * DAY - 2_000, NOON, 'en')).toBe('in 4 weeks')
  expect(relative(NOON + 36 * 60 * MINUTE, NOON, 'en')).toBe('in 1 day')
})

test('a time of today needs no day, one of another year needs the year', () => {
  expect(stamp(NOON - 60 * MINUTE, NOON, 'UTC', 'en-GB')).toBe('11:00')
  expect(stamp(NOON - 48 * 60 * MINUTE, NOON, 'UTC', 'en-GB')).toBe('20 Nov, 12:00')
  expect(stamp(Date.UTC(2025, 0, 2, 3, 4), NOON, 'UTC', 'en-GB')).toBe('2 Jan 2025, 03:04')
})

test('a record’s time has its date, also today', () => {
  expect(dated(NOON, 'UTC', 'en-GB')).toBe('22 Nov 2026, 12:00:00')
})

test('the day is the one of the time zone', () => {
  const late = Date.UTC(2026, 10, 21, 23, 30)
  expect(stamp(late, NOON, 'Asia/Tokyo', 'en-GB')).toBe('08:30')
})

test('a countdown ends at nought', () => {
  expect(clock(65_000)).toBe('1:05')
  expect(clock(7_389_000)).toBe('2:03:09')
  expect(clock(-5)).toBe('0:00')
})

test('durations have at most two units', () => {
  expect(duration(840)).toBe('840 ms')
  expect(duration(3_240)).toBe('3.2 s')
  expect(duration(245_000)).toBe('4 min 5 s')
  expect(duration(7_620_000)).toBe('2 h 7 min')
  expect(duration(273_600_000)).toBe('3 d 4 h')
  expect(duration(120_000)).toBe('2 min')
})

test('what still runs counts in whole seconds', () => {
  expect(wholeSeconds(129)).toBe('0 s')
  expect(wholeSeconds(6_400)).toBe('6 s')
  expect(wholeSeconds(65_000)).toBe('1 min 5 s')
})
