// The results that every text of the organization must have: the operator's expectations, read as the service does
// (src/core/policy/expectations.rs), and the organization's own, in its text. No React here.
import type { CellState, Row } from './cells'
import { type Cell, type Effect, isSame, ruleLines } from './lines'
import type { Proposal } from './queries'

const FILE = 'expectations.csv'

export interface Expectation extends Cell {
  /** Of the operator's: `*`, `default` or the organization. */
  place: string | null
  /** Of the organization's own: the line of the text. */
  line: number | null
  effect: Effect
  /** `undefined` while the service has not judged it. */
  isMet: boolean | undefined
}

interface Given {
  /** The lines of `expectations.csv` that concern the organization. */
  expected: string
  /** The draft, or the text in force. */
  text: string
  rows: Row[]
  /** The service's answer about a draft. Null: the text is in force. */
  proposal: Proposal | undefined | null
}

/** The expectations that apply to the text, its own first. */
export function expectationsOf(given: Given): Expectation[] {
  const cells = given.rows.flatMap((row) => row.cells)
  return [...ownOf(given, cells), ...operatorsOf(given, cells)]
}

function ownOf({ text, proposal }: Given, cells: CellState[]): Expectation[] {
  return ruleLines(text, 'e').flatMap(({ line, effect, ...about }) => {
    const cell = cells.find((each) => isSame(each, about))
    if (!cell) return []
    const isMet =
      proposal === null
        ? cell.allowed === (effect === 'allow')
        : proposal?.expectations.find((each) => each.line === line)?.met
    const { subject, permission } = cell
    return [{ subject, place: null, line, permission, effect, isMet }]
  })
}

/** Those of `default` concern only organizations without own rules. */
function operatorsOf({ expected, text, proposal }: Given, cells: CellState[]): Expectation[] {
  return expected.split('\n').flatMap((line) => {
    const [subject, place, permission, effect, ...more] = line.split(',').map((field) => field.trim())
    const isLine = place && permission && (effect === 'allow' || effect === 'deny') && more.length === 0
    const cell = isLine && cells.find((each) => isSame(each, { subject: subject ?? '', permission }))
    if (!cell || (place === 'default' && text.trim())) return []
    const { subject: who } = cell
    return [{ subject: who, place, line: null, permission, effect, isMet: isMet(cell, effect, proposal) }]
  })
}

/** How many of the operator's apply only to organizations without own rules, and so not to this text. */
export const skippedIn = (expected: string, text: string): number =>
  text.trim() ? expected.split('\n').filter((line) => line.split(',')[1]?.trim() === 'default').length : 0

/** The expectation of a cell that matters most: one that fails, then the organization's own. */
export const expectationOf = (expectations: Expectation[], cell: Cell): Expectation | undefined => {
  const about = expectations.filter((each) => isSame(each, cell))
  return about.find(({ isMet }) => isMet === false) ?? about[0]
}

function isMet(cell: CellState, effect: Effect, proposal: Given['proposal']): boolean | undefined {
  if (proposal === undefined) return undefined
  if (proposal === null || proposal.ok) return cell.allowed === (effect === 'allow')
  const failed = `expected ${effect} of ${cell.permission} to ${cell.subject}, `
  const unmet = proposal.problems.filter(({ reason }) => reason.startsWith('expected '))
  if (unmet.some(({ file, reason }) => file === FILE && reason.startsWith(failed))) return false
  // The service judges only texts without other problems.
  return unmet.length === proposal.problems.length || undefined
}
