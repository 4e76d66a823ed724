import { expect, test } from 'vitest'
import { quoted } from './quote'

test('a quote has a mark on each line, and comes after what was typed', () => {
  expect(quoted('', 'one\n\ntwo\n')).toBe('> one\n>\n> two\n\n')
  expect(quoted('Hello\n', 'one')).toBe('Hello\n\n> one\n\n')
})
