import { expect, test } from 'vitest'
import { linesOf, MOST, type Row, seriesOf } from './series'

const DAYS = ['2026-06-01', '2026-06-02']
const row = (day: string, key: string | null, costMicro: number, more: Partial<Row> = {}): Row => ({
  day,
  key,
  label: null,
  turns: 1,
  unpriced: 0,
  inputTokens: '1',
  outputTokens: '20',
  cacheReadTokens: '300',
  cacheWriteTokens: '4000',
  costMicro: String(costMicro),
  ...more,
})

test('series have a value for each day, the largest series first', () => {
  const rows = [
    row('2026-06-01', 'a', 1),
    row('2026-06-02', 'b', 5),
    row('2026-06-02', 'a', 2),
    row('2026-05-31', 'c', 9),
  ]
  expect(seriesOf(rows, DAYS, 'MODEL', 'COST')).toEqual([
    { id: 'b', label: 'b', values: [0, 5], total: 5 },
    { id: 'a', label: 'a', values: [1, 2], total: 3 },
  ])
  expect(seriesOf(rows, DAYS, 'MODEL', 'TOKENS').map(({ total }) => total)).toEqual([8642, 4321])
  expect(seriesOf(rows, DAYS, 'MODEL', 'TURNS')[0]).toMatchObject({ id: 'a', values: [1, 1] })
})

test('small series become one, and nothing is lost', () => {
  const rows = Array.from({ length: MOST + 3 }, (_, index) => row('2026-06-01', `m${index}`, 100 - index))
  const series = seriesOf([...rows, row('2026-06-02', 'other', 7)], DAYS, 'MODEL', 'COST')
  expect(series).toHaveLength(MOST + 1)
  expect(series.at(-1)).toEqual({ id: 'other', label: 'Others', values: [93 + 92 + 91, 7], total: 283 })
})

test('every series has a name', () => {
  const label = (by: Parameters<typeof seriesOf>[2], key: string | null, label: string | null = null) =>
    seriesOf([row('2026-06-01', key, 1, { label })], DAYS, by, 'COST')[0]?.label
  expect(label('AGENT', '7', 'Marlow')).toBe('Marlow')
  expect(label('CHANNEL', '7')).toBe('Channel 7')
  expect(label('CHANNEL', null)).toBe('No channel')
  expect(label('MODEL', null)).toBe('Model not reported')
  expect(label('CAUSE', 'API')).toBe('API')
})

test('a file has every row and each class of tokens', () => {
  const [head, line] = linesOf([row('2026-06-01', '7', 1_500_000, { label: '=Marlow' })], 'AGENT', 'USD')
  expect(head?.[8]).toBe('Cost (USD)')
  expect(line).toEqual(['2026-06-01', '7', '=Marlow', 1, 1, 20, 300, 4000, 1.5, 0])
})
