import { expect, test } from 'vitest'
import { levelOf, raiserOf } from './level'

test('the level follows from the number', () => {
  const of = (risk: number) => levelOf({ risk, severity: 'MEDIUM' })
  expect([0, 39, 40, 69, 70, 84, 85, 100].map(of)).toEqual([
    'LOW',
    'LOW',
    'MEDIUM',
    'MEDIUM',
    'HIGH',
    'HIGH',
    'CRITICAL',
    'CRITICAL',
  ])
})

test('without a number the severity counts', () => {
  expect(levelOf({ risk: null, severity: 'HIGH' })).toBe('HIGH')
})

test('an alert without an agent is Muster’s', () => {
  expect(raiserOf(null)).toEqual({ name: 'Muster', url: undefined })
  expect(raiserOf({ name: 'Marlow', avatarUrl: '/a.png' })).toEqual({ name: 'Marlow', url: '/a.png' })
})
