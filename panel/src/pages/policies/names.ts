// Roles, service tokens and cells in words.
import { ROLE_NAMES, type Role } from '../members/roles'
import { type CellState, isEdited, TOKEN } from './cells'
import type { Expectation } from './expectations'
import type { Cell, RuleLine } from './lines'
import type { CellChange, Permissions } from './queries'

export const subjectName = (subject: string) =>
  subject === TOKEN ? 'Service token' : (ROLE_NAMES[subject as Role] ?? subject)

/** "Viewers may not see contacts and their addresses": a permission's meaning as a sentence about those who have a role. */
export function mayWords({ subject, permission }: Cell, allowed: boolean, permissions: Permissions): string {
  const meaning = permissions.find((each) => each.permission === permission)?.meaning ?? permission
  const act = meaning.charAt(0).toLowerCase() + meaning.slice(1).replace(/\.$/, '')
  return `${subjectName(subject)}s ${allowed ? 'may' : 'may not'} ${act}`
}

/** The mark beside yes or no: changed by the draft, or by the organization's own rules. */
export function markOf(cell: CellState): 'draft' | 'own' | 'by own' | null {
  if (isEdited(cell) || cell.allowed !== cell.inForce) return 'draft'
  if (cell.own) return 'own'
  return cell.allowed === cell.general ? null : 'by own'
}

/** "contact.view for Viewer: no, own line: deny, in the draft". With the words of the mark. */
export function cellName(cell: CellState, expected?: Expectation): string {
  const { subject, permission, allowed, own, fixed, calls } = cell
  const mark = markOf(cell)
  return [
    `${permission} for ${subjectName(subject)}: ${allowed ? 'yes' : 'no'}`,
    own && `own line: ${own}`,
    mark === 'by own' && 'by own lines about other roles',
    mark === 'draft' && 'in the draft',
    fixed && 'only the operator can change it',
    expected && `expected: ${expected.effect === 'allow' ? 'yes' : 'no'}`,
    expected?.isMet === false && 'not met',
    calls && callWords(calls),
  ]
    .filter(Boolean)
    .join(', ')
}

/** "12 calls allowed, 1 call refused"; null without calls. */
export function callWords({ allowed, refused }: NonNullable<CellState['calls']>): string | null {
  const counted = (count: number) => `${count.toLocaleString()} ${count === 1 ? 'call' : 'calls'}`
  const words = [allowed && `${counted(allowed)} allowed`, refused && `${counted(refused)} refused`]
  return words.filter(Boolean).join(', ') || null
}

/** Why a cell can't be changed within the organization. */
export const fixedReason = (fixed: RuleLine | 'token') =>
  fixed === 'token'
    ? 'The most that a service token can have is the same in every organization. Only the operator of this installation can change it, in policy.csv.'
    : `Line ${fixed.line} of policy.csv denies this in every organization. Only the operator of this installation can change it.`

/** Who gains or loses what, by role: "Viewer", gains, [contact.view, …]. */
export function byRole(changes: readonly CellChange[]): [string, boolean, CellChange[]][] {
  const groups = new Map<string, [string, boolean, CellChange[]]>()
  for (const change of changes) {
    const key = `${change.subject} ${change.allowed}`
    const group = groups.get(key) ?? [change.subject, change.allowed, []]
    group[2].push(change)
    groups.set(key, group)
  }
  return [...groups.values()]
}

/** Who wrote a version. */
export const writer = ({ authorKind, authorName }: { authorKind: string; authorName: string | null }) =>
  authorName ?? (authorKind === 'OPERATOR' ? 'The operator' : 'Someone')
