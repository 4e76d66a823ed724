import { expect, test } from 'vitest'
import { hasLeft, withGone } from './gone'

const id = (item: number) => item
const merged = (before: number[], now: number[], gone: number[]) =>
  withGone(before, now, new Map(gone.map((item) => [item, item])), id)

test('an item that has gone stays after the one that it followed', () => {
  expect(merged([1, 2, 3, 4], [1, 4], [2, 3])).toEqual([1, 2, 3, 4])
})

test('the first one stays first', () => {
  expect(merged([1, 2], [2], [1])).toEqual([1, 2])
})

test('new ones come where they belong, and what is not kept is gone', () => {
  expect(merged([1, 2, 3], [9, 1, 3], [])).toEqual([9, 1, 3])
  expect(merged([1, 2, 3], [9, 3], [2])).toEqual([2, 9, 3])
})

test('what has left is known, but not what may have moved below the end', () => {
  expect(hasLeft([1, 2, 3, 4], [1, 4], false, id)).toEqual([2, 3])
  expect(hasLeft([1, 2, 3, 4], [1, 3], true, id)).toEqual([2])
  expect(hasLeft([1, 2], [], true, id)).toEqual([])
})
