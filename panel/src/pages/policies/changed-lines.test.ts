import { expect, test } from 'vitest'
import { changedLines } from './changed-lines'

const marked = (before: string, after: string) =>
  changedLines(before, after).map(({ sign, text }) => sign + text)

test('lines that stay are not shown', () => {
  expect(marked('a\nb\nc\n', 'a\nc\nd\n')).toEqual(['-b', '+d'])
  expect(marked('', 'a\n')).toEqual(['+a'])
  expect(marked('a\nx\nb\ny\n', 'b\ny\nz')).toEqual(['-a', '-x', '+z'])
  expect(marked('same\n', 'same')).toEqual([])
  expect(marked('a\na\n', 'a\n')).toEqual(['-a'])
})
