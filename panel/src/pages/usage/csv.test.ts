import { expect, test } from 'vitest'
import { csvOf } from './csv'

test('what a spreadsheet would run is text', () => {
  const cells = ['=1+1', '+1', '-1', '@SUM(A1)', '\tx', '\rx', 'a=b', '']
  expect(csvOf(cells.map((cell) => [cell]))).toBe(
    ["'=1+1", "'+1", "'-1", "'@SUM(A1)", "'\tx", '"\'\rx"', 'a=b', ''].map((line) => `${line}\r\n`).join(''),
  )
  expect(csvOf([['model;=1+1;"-1"', 'a;b']])).toBe(`"model;'=1+1;'""-1""",a;b\r\n`)
  expect(csvOf([['=HYPERLINK("http://x","y")', -1]])).toBe('"\'=HYPERLINK(""http://x"",""y"")",-1\r\n')
})

test('separators, quotes and lines are quoted', () => {
  expect(csvOf([['a,b', 'say "hi"', 'two\nlines', 1.5]])).toBe('"a,b","say ""hi""","two\nlines",1.5\r\n')
})
