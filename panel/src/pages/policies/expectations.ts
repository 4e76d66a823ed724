// The operator's expectations: results that every text of the organization must have. Read as the service does
// (src/core/policy/expectations.rs). No React here.
import type { CellState, Row } from './cells'
import { type Cell, type Effect, isSame } from './lines'
import type { Proposal } from './queries'

const FILE = 'expectations.csv'

export interface Expectation extends Cell {
  /** `*`, `default` or the organization. */
  place: string
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

/** The expectations that apply to the text. Those of `default` concern only organizations without own rules. */
export function expectationsOf({ expected, text, rows, proposal }: Given): Expectation[] {
  const cells = rows.flatMap((row) => row.cells)
  return expected.split('\n').flatMap((line) => {
    const [subject, place, permission, effect, ...more] = line.split(',').map((field) => field.trim())
    const isLine = place && permission && (effect === 'allow' || effect === 'deny') && more.length === 0
    const cell = isLine && cells.find((each) => isSame(each, { subject: subject ?? '', permission }))
    if (!cell || (place === 'default' && text.trim())) return []
    return [{ subject: cell.subject, place, permission, effect, isMet: isMet(cell, effect, proposal) }]
  })
}

function isMet(cell: CellState, effect: Effect, proposal: Given['proposal']): boolean | undefined {
  if (proposal === undefined) return undefined
  if (proposal === null || proposal.ok) return cell.allowed === (effect === 'allow')
  const failed = `expected ${effect} of ${cell.permission} to ${cell.subject}, `
  const ofExpectations = proposal.problems.filter(({ file }) => file === FILE)
  if (ofExpectations.some(({ reason }) => reason.startsWith(failed))) return false
  // The service judges only texts without other problems.
  return ofExpectations.length === proposal.problems.length || undefined
}
