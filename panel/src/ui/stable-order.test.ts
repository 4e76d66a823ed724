import { expect, test } from 'vitest'
import { stableOrder } from './stable-order'

const id = (item: { id: number }) => item.id
const of = (...ids: number[]) => ids.map((id) => ({ id }))
const ids = (items: { id: number }[]) => items.map(({ id }) => id)

test('a list that no one works in is shown as it comes', () => {
  expect(stableOrder(null, of(3, 1), id)).toEqual({ items: of(3, 1), waiting: 0 })
})

test('new records above wait, and are counted', () => {
  const { items, waiting } = stableOrder([1, 2], of(9, 1, 2), id)
  expect(ids(items)).toEqual([1, 2])
  expect(waiting).toBe(1)
})

test('moved records stay where they were, and are counted', () => {
  const { items, waiting } = stableOrder([1, 2, 3, 4], of(3, 1, 2, 4), id)
  expect(ids(items)).toEqual([1, 2, 3, 4])
  expect(waiting).toBe(1)
  expect(stableOrder([1, 2, 3, 4], of(4, 3, 2, 1), id).waiting).toBe(3)
})

test('what is gone goes, and the next page appends without being counted', () => {
  const { items, waiting } = stableOrder([1, 2, 3], of(1, 3, 4, 5), id)
  expect(ids(items)).toEqual([1, 3, 4, 5])
  expect(waiting).toBe(0)
})

test('a record that someone opens or has just created is shown at once', () => {
  const all = of(9, 2, 1)
  expect(stableOrder([1, 2], all, id, 9)).toEqual({ items: all, waiting: 0 })
  expect(ids(stableOrder([1, 2], all, id, 2).items)).toEqual([1, 2])
  expect(ids(stableOrder([1, 2], all, id, 7).items)).toEqual([1, 2])
})
