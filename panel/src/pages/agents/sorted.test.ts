import { expect, test } from 'vitest'
import { directionOf, sortedBy } from './sorted'

test('a head selects its key, and reverses it when pressed again', () => {
  expect(sortedBy('ACTIVITY', 'NAME', undefined)).toEqual({ sort: 'ACTIVITY', order: undefined })
  expect(sortedBy('ACTIVITY', 'ACTIVITY', undefined)).toEqual({ sort: 'ACTIVITY', order: 'asc' })
  expect(sortedBy('ACTIVITY', 'ACTIVITY', 'asc')).toEqual({ sort: 'ACTIVITY', order: undefined })
  expect(sortedBy('NAME', 'NAME', undefined)).toEqual({ sort: undefined, order: 'desc' })
  expect(sortedBy('NAME', 'STATUS', 'desc')).toEqual({ sort: undefined, order: undefined })
})

test('the direction is that of the address, or the key’s own', () => {
  expect([directionOf('NAME', undefined), directionOf('ACTIVITY', undefined)]).toEqual(['asc', 'desc'])
  expect(directionOf('ACTIVITY', 'asc')).toBe('asc')
})
