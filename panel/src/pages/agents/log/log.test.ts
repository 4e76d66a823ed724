import { expect, test } from 'vitest'
import {
  type Batch,
  EMPTY,
  finderOf,
  hitsOf,
  itemsOf,
  type Log,
  MOST,
  partsOf,
  textOf,
  withBatch,
} from './log'

const BEGUN = '2026-01-31T08:00:00.000Z'
const line = (text: string, source: Batch['lines'][number]['source'] = 'STDERR') => ({
  source,
  text,
  time: BEGUN,
})
const batch = (position: number, texts: string[], begunAt = BEGUN): Batch => ({
  begunAt,
  position,
  lines: texts.map((text) => line(text)),
})
const read = (...batches: Batch[]) => batches.reduce(withBatch, EMPTY)
const texts = (log: Log) => log.lines.map(({ position, text }) => `${position} ${text}`)

test('batches that repeat, overlap or come late are one log', () => {
  const log = read(batch(3, ['c', 'd']), batch(1, ['a', 'b', 'c']), batch(4, ['d', 'e']))
  expect(texts(log)).toEqual(['1 a', '2 b', '3 c', '4 d', '5 e'])
})

test('missing lines are a gap, until they come', () => {
  const log = read(batch(1, ['a']), batch(4, ['d']))
  expect(itemsOf(log).map((item) => (item.is === 'gap' ? item.missing : item.line.text))).toEqual([
    'a',
    2,
    'd',
  ])
  expect(itemsOf(withBatch(log, batch(2, ['b', 'c']))).some(({ is }) => is === 'gap')).toBe(false)
})

test('an empty log is answered, and lines of another log replace it', () => {
  expect(read(batch(1, []))).toEqual({ begunAt: BEGUN, lines: [] })
  const later = '2026-02-01T08:00:00.000Z'
  const log = read(batch(90, ['of the last server']), batch(1, ['new'], later), batch(91, ['late']))
  expect(texts(log)).toEqual(['1 new'])
})

test('a log that is open for days keeps its newest lines', () => {
  const many = Array.from({ length: MOST }, (_, index) => `${index}`)
  const log = read(batch(1, many), batch(MOST + 1, ['last']))
  expect([log.lines.length, log.lines.at(0)?.position, log.lines.at(-1)?.text]).toEqual([MOST, 2, 'last'])
})

test('a source hides lines and no gap', () => {
  const log: Log = read({ begunAt: BEGUN, position: 1, lines: [line('a'), line('b', 'GATE'), line('c')] })
  expect(itemsOf(log, 'GATE')).toHaveLength(1)
  expect(itemsOf(withBatch(log, batch(9, ['i'])), 'GATE').map(({ is }) => is)).toEqual(['line', 'gap'])
})

test('words are found as they are written, in any case', () => {
  const finder = finderOf('a.b(')
  const items = itemsOf(read(batch(1, ['axb(', 'say A.B( twice: a.b(', 'ab'])))
  expect(hitsOf(items, finder)).toEqual([1])
  expect(
    partsOf('say A.B( twice: a.b(', finder).map(({ text, isHit }) => (isHit ? `[${text}]` : text)),
  ).toEqual(['say ', '[A.B(]', ' twice: ', '[a.b(]'])
  expect(hitsOf(items, finderOf(''))).toEqual([])
})

test('a download has a line for each line', () => {
  const items = itemsOf(read(batch(1, ['a']), batch(4, ['d']), batch(6, ['f'])))
  const line = (text: string) => `${BEGUN} STDERR ${text}\n`
  expect(textOf(items)).toBe(
    `${line('a')}(2 lines are missing)\n${line('d')}(1 line is missing)\n${line('f')}`,
  )
})
