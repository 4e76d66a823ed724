// The service's rows as series to plot, and as lines of a file. Pure, tested.
import { words } from '../../ui/status'

export type Measure = 'COST' | 'TOKENS' | 'TURNS'
export type By = 'AGENT' | 'MODEL' | 'CHANNEL' | 'CAUSE'

export interface Row {
  day: string
  key: string | null
  label: string | null
  turns: number
  unpriced: number
  inputTokens: string
  outputTokens: string
  cacheReadTokens: string
  cacheWriteTokens: string
  costMicro: string
}

export interface Series {
  id: string
  label: string
  /** One for each day. */
  values: number[]
  total: number
}

/** How many series a plot can have: the largest ones, and the rest as one. */
export const MOST = 7
/** The id of the rest, which is also the service's key for its own rest. */
export const REST = 'other'

/** The series of a measure, the largest first and the rest last. */
export function seriesOf(rows: readonly Row[], days: readonly string[], by: By, measure: Measure): Series[] {
  const place = new Map(days.map((day, index) => [day, index]))
  const found = new Map<string, Series>()
  for (const row of rows) {
    const at = place.get(row.day)
    if (at !== undefined) add(found, row.key ?? '', labelOf(row, by), at, amountOf(row, measure), days.length)
  }
  const sorted = [...found.values()]
    .filter(({ id, total }) => id !== REST && total > 0)
    .sort((a, b) => b.total - a.total)
  const rest = new Map<string, Series>()
  const small = [
    ...sorted.slice(MOST),
    ...[...found.values()].filter(({ id, total }) => id === REST && total > 0),
  ]
  for (const { values } of small)
    values.forEach((value, at) => {
      add(rest, REST, 'Others', at, value, days.length)
    })
  return [...sorted.slice(0, MOST), ...rest.values()]
}

function add(to: Map<string, Series>, id: string, label: string, at: number, value: number, days: number) {
  const series = to.get(id) ?? { id, label, values: new Array<number>(days).fill(0), total: 0 }
  series.values[at] = (series.values[at] ?? 0) + value
  series.total += value
  to.set(id, series)
}

export function amountOf(row: Row, measure: Measure): number {
  if (measure === 'TURNS') return row.turns
  if (measure === 'COST') return Number(row.costMicro)
  return [row.inputTokens, row.outputTokens, row.cacheReadTokens, row.cacheWriteTokens]
    .map(Number)
    .reduce((sum, tokens) => sum + tokens)
}

const NONE: Record<By, string> = {
  AGENT: 'No agent',
  MODEL: 'Model not reported',
  CHANNEL: 'No channel',
  CAUSE: 'No cause',
}

export function labelOf({ key, label }: Row, by: By): string {
  if (key === null) return NONE[by]
  if (label !== null) return label
  if (key === REST) return 'Others'
  if (by === 'MODEL') return key
  return by === 'CAUSE' ? words(key) : `${words(by)} ${key}`
}

/** The table's file: every row, with tokens by class. */
export function linesOf(rows: readonly Row[], by: By, currency: string): (string | number)[][] {
  const head = [
    'Day',
    `${words(by)} key`,
    words(by),
    'Turns',
    'Input tokens',
    'Output tokens',
    'Tokens read from a cache',
    'Tokens written to a cache',
    `Cost (${currency})`,
    'Of unknown cost',
  ]
  const lines = rows.map((row) => [
    row.day,
    row.key ?? '',
    labelOf(row, by),
    row.turns,
    Number(row.inputTokens),
    Number(row.outputTokens),
    Number(row.cacheReadTokens),
    Number(row.cacheWriteTokens),
    Number(row.costMicro) / 1_000_000,
    row.unpriced,
  ])
  return [head, ...lines]
}
