import { expect, test } from 'vitest'
import { snoozeChoices } from './snooze'

const now = new Date('2026-03-02T10:00:00Z')

test('what never expires can be hidden for as long as offered', () => {
  expect(snoozeChoices(now, null).every(({ refused }) => refused === undefined)).toBe(true)
})

test('nothing is hidden beyond ten minutes before it expires', () => {
  const choices = snoozeChoices(now, '2026-03-02T10:40:00Z')
  expect(choices.filter(({ refused }) => !refused).map(({ until }) => until)).toEqual([
    '2026-03-02T10:15:00.000Z',
    '2026-03-02T10:30:00.000Z',
  ])
})

test('what expires at once can not be hidden at all', () => {
  expect(snoozeChoices(now, '2026-03-02T10:05:00Z').every(({ refused }) => refused)).toBe(true)
})
