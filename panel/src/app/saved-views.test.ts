import { expect, test } from 'vitest'
import {
  MAX_NAME,
  MAX_VIEWS,
  readViews,
  refusalOf,
  searchOfView,
  viewOf,
  withoutView,
  withView,
} from './saved-views-list'

const risky = { name: 'Risky', search: 'severity=HIGH&sort=EXPIRES' }

test('a view is the filters and the order, without what is open', () => {
  expect(viewOf({ sort: 'EXPIRES', severity: 'HIGH', peek: 7, open: 'new', page: 2 })).toBe(risky.search)
  expect(viewOf({ status: ['OPEN', 'PENDING'], q: 'a b' })).toBe('q=a+b&status=OPEN,PENDING')
  expect(viewOf({ peek: 7, q: undefined })).toBe('')
})

test('a view leads to the address that it was made from', () => {
  expect(viewOf(searchOfView(risky))).toBe(risky.search)
})

test('a name is not empty, not too long and not taken in any case', () => {
  expect(refusalOf([risky], '  ')).toMatch('empty')
  expect(refusalOf([risky], 'x'.repeat(MAX_NAME + 1))).toMatch('At most')
  expect(refusalOf([risky], 'risky ')).toMatch('Another view')
  expect(refusalOf([risky], 'RISKY', 'Risky')).toBeNull()
  expect(refusalOf([risky], 'Mine')).toBeNull()
})

test('there is an end to them, but a full list can be renamed', () => {
  const full = Array.from({ length: MAX_VIEWS }, (_, index) => ({ name: String(index), search: '' }))
  expect(refusalOf(full, 'One more')).toMatch('At most')
  expect(refusalOf(full, 'First', '0')).toBeNull()
})

test('views are put in by name, renamed, and taken out', () => {
  const two = withView([risky], { name: ' Mine', search: 'mine=true' })
  expect(two.map(({ name }) => name)).toEqual(['Mine', 'Risky'])
  expect(withView(two, { ...risky, name: 'A risk' }, 'Risky').map(({ name }) => name)).toEqual([
    'A risk',
    'Mine',
  ])
  expect(withoutView(two, 'Mine')).toEqual([risky])
})

test('anything that is not a view is left out', () => {
  expect(readViews([risky, { name: 1 }, null, 'x'])).toEqual([risky])
  expect(readViews({ name: 'x' })).toEqual([])
})
