// The draft of an organization's rules: a text that is not in force, and the cells changed or expected in it. A cell that
// is changed back leaves no trace. No React here.
import {
  type Cell,
  type Change,
  cellChanges,
  type Effect,
  effectIn,
  isSame,
  ruleLines,
  setLine,
} from './lines'

export interface Draft {
  /** The version in force when the draft was begun, and its text. */
  version: string
  base: string
  /** The text as typed. */
  typed: string
  /** The cells changed since. */
  cells: Change[]
}

export const begun = (version: string, text: string): Draft => ({
  version,
  base: text,
  typed: text,
  cells: [],
})

export const textOf = ({ typed, cells }: Draft, org: number): string =>
  cells.reduce((text, change) => setLine(text, org, change), typed)

export const isChanged = (draft: Draft, org: number) => textOf(draft, org) !== draft.base

/** The draft with another text. */
export const typed = (draft: Draft, text: string): Draft => ({ ...draft, typed: text, cells: [] })

/** The draft with another own line about a cell, or without one. */
export function changed(draft: Draft, change: Change): Draft {
  const { kind = 'p' } = change
  const others = draft.cells.filter((cell) => !isSame(cell, change) || (cell.kind ?? 'p') !== kind)
  const before = effectIn(ruleLines(draft.typed, kind), change)
  return { ...draft, cells: before === change.effect ? others : [...others, change] }
}

/** The change by a click on a cell: undoes the draft's change, removes the own line, or reverses the current value. */
export function clicked(draft: Draft, cell: Cell, allowed: boolean): Change {
  const { subject, permission } = cell
  const before = effectIn(ruleLines(draft.typed), cell)
  const isEdited = draft.cells.some((each) => isSame(each, cell) && each.kind !== 'e')
  const opposite: Effect = allowed ? 'deny' : 'allow'
  return { subject, permission, effect: isEdited ? before : before ? null : opposite }
}

/** The draft's changed cells on top of another text. Its comments, and lines that can't be read, are left behind. */
export const rebased = (draft: Draft, org: number, version: string, text: string): Draft =>
  cellChanges(draft.base, textOf(draft, org)).reduce(changed, begun(version, text))

/** The stored form, and back. Unreadable text gives null. */
export const stored = (draft: Draft): string => JSON.stringify(draft)

export function restored(text: string): Draft | null {
  try {
    const { version, base, typed, cells } = JSON.parse(text) as Draft
    const isDraft = [version, base, typed].every((part) => typeof part === 'string') && Array.isArray(cells)
    return isDraft ? { version, base, typed, cells } : null
  } catch {
    return null
  }
}
