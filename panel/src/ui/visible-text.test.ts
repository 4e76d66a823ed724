import { expect, test } from 'vitest'
import { hiddenCount, partsOf } from './visible-text'

test('a right-to-left override is named where it stands', () => {
  expect(partsOf('rm \u202Efdp.exe')).toEqual([
    { text: 'rm ' },
    { text: '\u202E', hidden: 'U+202E right-to-left override' },
    { text: 'fdp.exe' },
  ])
})

test('controls, zero-width characters, fillers, tags and no-break spaces are found', () => {
  for (const hidden of [
    '\u0000',
    '\u001b',
    '\u200b',
    '\ufeff',
    '\u3164',
    '\u{e0041}',
    '\u00a0',
    '\u00ad',
    '\u2800',
    '\u2066',
  ]) {
    expect(hiddenCount(`a${hidden}b`), JSON.stringify(hidden)).toBe(1)
  }
})

test('plain text of any script, tabs, line ends and emoji of several parts hide nothing', () => {
  for (const plain of ['Grüße', 'שלום', '日本語', 'a\tb\nc', 'a\r\nb', '👩‍💻', '🏳️‍🌈', '']) {
    expect(hiddenCount(plain), plain).toBe(0)
  }
})

test('a joiner between letters and a lone carriage return are found', () => {
  expect(hiddenCount('a\u200db')).toBe(1)
  expect(hiddenCount('safe\rrm -rf')).toBe(1)
})

test('the parts are the text again', () => {
  const text = '\u202Ea\u200bb\u{e0041}c'
  expect(
    partsOf(text)
      .map(({ text }) => text)
      .join(''),
  ).toBe(text)
})
