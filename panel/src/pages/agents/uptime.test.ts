import { expect, test } from 'vitest'
import { shareInWords, uptimeOf } from './uptime'

const DAY = 86_400_000
const NOW = Date.parse('2026-06-30T12:00:00Z')
const at = (days: number) => new Date(NOW - days * DAY).toISOString()
const launch = (generation: number, started: number, up: number | null, ended: number | null) => ({
  generation,
  startedAt: at(started),
  upAt: up === null ? null : at(up),
  endedAt: ended === null ? null : at(ended),
})

test('30 days, of a launch that began before them', () => {
  const launches = [launch(3, 3, 3, null), launch(2, 9, null, 8), launch(1, 40, 40, 12)]
  expect(uptimeOf(launches, NOW)).toEqual({
    since: NOW - 30 * DAY,
    isWhole: true,
    share: 21 / 30,
    restarts: 2,
  })
})

test('a younger agent counts from its first launch, which does not count as a restart', () => {
  const launches = [launch(2, 1, 1, null), launch(1, 10, 9, 1)]
  expect(uptimeOf(launches, NOW)).toEqual({ since: NOW - 10 * DAY, isWhole: false, share: 0.9, restarts: 1 })
  expect(uptimeOf([], NOW)).toBeNull()
  expect(uptimeOf([launch(1, 0, 0, null)], NOW)?.share).toBe(0)
})

test('of many launches only the kept ones count', () => {
  expect(uptimeOf([launch(80, 1, 1, null), launch(79, 2, 2, 1)], NOW)).toMatchObject({
    since: NOW - 2 * DAY,
    share: 1,
    restarts: 2,
  })
})

test('nearly always is not always', () => {
  expect(shareInWords(0.99999)).toBe('99.9 %')
  expect(shareInWords(1)).toBe('100 %')
})
