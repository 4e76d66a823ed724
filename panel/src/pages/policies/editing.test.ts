import { expect, test } from 'vitest'
import { changeOf } from './editing'

test('a change replaces only what differs, also where the same text repeats', () => {
  expect(changeOf('a\nb\nc', 'a\nB\nc')).toEqual({ from: 2, to: 3, insert: 'B' })
  expect(changeOf('aa', 'aaa')).toEqual({ from: 2, to: 2, insert: 'a' })
  expect(changeOf('aaa', 'aa')).toEqual({ from: 2, to: 3, insert: '' })
  expect(changeOf('', 'new')).toEqual({ from: 0, to: 0, insert: 'new' })
})
