import { expect, test } from 'vitest'
import { isParsable } from './parsable'

test('what people and agents write is parsed', () => {
  for (const text of [
    '',
    '# Title\n\n- one\n  - two\n    1. three\n\n> quoted\n>> twice',
    '-'.repeat(200),
    '- a list, **bold**, `code`, <b>html</b> <!-- and a comment -->\n'.repeat(90),
    `${'| a | b |\n'.repeat(2)}${'| 1 | 2 |\n'.repeat(5_000)}`,
  ]) {
    expect(isParsable(text), text.slice(0, 40)).toBe(true)
  }
})

test('what would take the parser minutes is not', () => {
  for (const text of [
    'x'.repeat(100_001),
    '*a'.repeat(3_000),
    `a ${'<!--'.repeat(20_000)}`,
    `a ${'<?'.repeat(20_000)}`,
    '>'.repeat(50_000),
    `words\n${'> > '.repeat(50_000 / 4)}`,
    '- '.repeat(40_000),
    `  ${'1. '.repeat(30_000)}`,
  ]) {
    expect(isParsable(text), text.slice(0, 40)).toBe(false)
  }
})
