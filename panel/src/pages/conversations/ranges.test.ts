import { expect, test } from 'vitest'
import { rangesOf, snippetWithoutCode } from './ranges'

const hits = (text: string, ranges: number[][]) =>
  rangesOf(text, ranges)
    .map(({ text: part, isHit }) => (isHit ? `[${part}]` : part))
    .join('')

test('what was found is marked, counted in characters', () => {
  expect(hits('one two', [[4, 7]])).toBe('one [two]')
  expect(hits('🙂 two', [[2, 5]])).toBe('🙂 [two]')
})

test('ranges beyond the text or over each other lose nothing', () => {
  expect(
    hits('abc', [
      [1, 9],
      [0, 2],
    ]),
  ).toBe('[ab][c]')
  expect(hits('abc', [])).toBe('abc')
})

test('the matches of a snippet move with its text', () => {
  const shown = snippetWithoutCode('ERROR', 'FAILED\nno tide', [
    [0, 6],
    [10, 14],
  ])
  expect(shown).toEqual({ text: 'no tide', ranges: [[3, 7]] })
})
