// The known lines of an agent's log. Batches may repeat, overlap and be missing. Pure, tested.
import type { LOG_SOURCES } from '../search'

export type Source = (typeof LOG_SOURCES)[number]

export const SOURCE_NAMES: Record<Source, string> = {
  STDERR: 'Standard error',
  LAUNCH: 'Launches',
  GATE: 'Refusals',
  MCP: 'MCP servers',
}

export interface Line {
  position: number
  source: Source
  text: string
  time: string
}

export interface Batch {
  begunAt: string
  position: number
  lines: readonly Omit<Line, 'position'>[]
}

export interface Log {
  /** Null until the host has answered. */
  begunAt: string | null
  /** In the order of their positions. */
  lines: readonly Line[]
}

export const EMPTY: Log = { begunAt: null, lines: [] }

/** The most lines kept: a log is left open for days. */
export const MOST = 20_000

export function withBatch(log: Log, batch: Batch): Log {
  // Of an older log: the agent has moved to another server since.
  if (log.begunAt !== null && batch.begunAt < log.begunAt) return log
  const known = log.begunAt === batch.begunAt ? log.lines : []
  const end = batch.position + batch.lines.length
  const lines = [
    ...known.filter(({ position }) => position < batch.position),
    ...batch.lines.map((line, index) => ({ ...line, position: batch.position + index })),
    ...known.filter(({ position }) => position >= end),
  ]
  return { begunAt: batch.begunAt, lines: lines.length > MOST ? lines.slice(-MOST) : lines }
}

export type Item = { is: 'line'; line: Line } | { is: 'gap'; before: number; missing: number }

/** The lines of a source, and the gaps where lines of any source are missing. */
export function itemsOf({ lines }: Log, source?: Source): Item[] {
  const items: Item[] = []
  let next = lines[0]?.position ?? 0
  for (const line of lines) {
    const { position } = line
    if (position > next) items.push({ is: 'gap', before: position, missing: position - next })
    if (!source || line.source === source) items.push({ is: 'line', line })
    next = position + 1
  }
  return items
}

export const keyOf = (item: Item): string =>
  item.is === 'line' ? `${item.line.position}` : `gap ${item.before}`

/** Finds the words, ignoring case. Null without words. */
export function finderOf(words: string): RegExp | null {
  return words === '' ? null : new RegExp(words.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'giu')
}

/** The indices of the items with a match. */
export function hitsOf(items: readonly Item[], finder: RegExp | null): number[] {
  if (!finder) return []
  return items.flatMap((item, index) =>
    item.is === 'line' && item.line.text.search(finder) >= 0 ? [index] : [],
  )
}

export interface Part {
  text: string
  from: number
  isHit: boolean
}

export function partsOf(text: string, finder: RegExp | null): Part[] {
  const parts: Part[] = []
  let at = 0
  const add = (to: number, isHit: boolean) => {
    if (to > at) parts.push({ text: text.slice(at, to), from: at, isHit })
    at = to
  }
  for (const { index, 0: found } of finder ? text.matchAll(finder) : []) {
    add(index, false)
    add(index + found.length, true)
  }
  add(text.length, false)
  return parts
}

export const wordsOfGap = (missing: number): string =>
  `${missing.toLocaleString()} ${missing === 1 ? 'line is' : 'lines are'} missing`

/** The log as a text file. */
export function textOf(items: readonly Item[]): string {
  const lines = items.map((item) =>
    item.is === 'line'
      ? `${item.line.time} ${item.line.source} ${item.line.text}`
      : `(${wordsOfGap(item.missing)})`,
  )
  return lines.map((line) => `${line}\n`).join('')
}
