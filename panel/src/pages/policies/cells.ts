// The cells of the matrix: their values in the draft, and the lines behind them. No React here.
import { type Cell, ceilingOf, type Effect, effectIn, isSame, type RuleLine, ruleLines } from './lines'
import type { CellChange, CellUse, General, Permissions, Policy } from './queries'

export const TOKEN = 'service_token'
export const SUBJECTS = ['OWNER', 'ADMIN', 'OPERATOR', 'VIEWER', TOKEN] as const

export interface CellState extends Cell {
  /** In the draft; without a draft, in force. */
  allowed: boolean
  inForce: boolean
  /** By the rules of all organizations. */
  general: boolean
  /** The effect of the draft's own line, and of the one in force. */
  own: Effect | null
  ownInForce: Effect | null
  /** Why the organization can't change it: the operator's line, or null for service tokens. */
  fixed: RuleLine | 'token' | null
  /** The recent calls; undefined while they are not known. */
  calls: { allowed: number; refused: number } | undefined
}

export interface Row {
  permission: string
  group: string
  meaning: string
  cells: CellState[]
}

interface Given {
  policy: Policy
  permissions: Permissions
  general: General
  text: string
  /** The service's answer about this text; undefined while it is pending or if it would be refused. */
  changes: readonly CellChange[] | undefined
  /** The recent calls; undefined while they are not known. */
  uses: readonly CellUse[] | undefined
}

export function rowsOf({ policy, permissions, general, text, changes, uses }: Given): Row[] {
  const [own, ownInForce] = [ruleLines(text), ruleLines(policy.text ?? '')]
  const ceiling = ceilingOf(policy.files.find(({ file }) => file === 'policy.csv')?.text ?? '')
  const isNow = ({ subject, permission }: Cell) =>
    subject === TOKEN
      ? policy.tokenCap.includes(permission)
      : policy.roles.some(({ role, permissions }) => role === subject && permissions.includes(permission))
  const stateOf = (cell: Cell): CellState => {
    const inForce = isNow(cell)
    const [mine, before] = [effectIn(own, cell), effectIn(ownInForce, cell)]
    const isCertain = changes !== undefined || mine === before || mine === null
    const certain = changes?.find((change) => isSame(change, cell))?.allowed ?? inForce
    return {
      ...cell,
      allowed: isCertain ? certain : mine === 'allow',
      inForce,
      general: general?.changes.find((change) => isSame(change, cell))?.allowed ?? inForce,
      own: mine,
      ownInForce: before,
      fixed: cell.subject === TOKEN ? 'token' : (ceiling(cell) ?? null),
      calls: uses && (uses.find((use) => isSame(use, cell)) ?? { allowed: 0, refused: 0 }),
    }
  }
  return permissions.map(({ permission, group, meaning }) => ({
    permission,
    group,
    meaning,
    cells: SUBJECTS.map((subject) => stateOf({ subject, permission })),
  }))
}

export const isEdited = ({ own, ownInForce }: CellState) => own !== ownInForce
/** Whether the organization's rules differ from the general ones, in text or in effect. */
export const differs = (cell: CellState) =>
  cell.own !== null || isEdited(cell) || cell.allowed !== cell.general || cell.allowed !== cell.inForce
/** The recent calls with the result that the cell shows. */
export const countOf = ({ allowed, calls }: CellState) => calls?.[allowed ? 'allowed' : 'refused'] ?? 0
/** Whether it is known that no recent call needed it. */
const isUnused = ({ calls }: CellState) => calls?.allowed === 0 && calls.refused === 0

interface Filters {
  q?: string
  role?: string
  own?: boolean
  never?: boolean
}

/** The rows that match, each with the columns that are shown. */
export function filtered(rows: Row[], { q = '', role, own, never }: Filters): Row[] {
  const wanted = q.toLowerCase().split(/\s+/).filter(Boolean)
  return rows
    .filter((row) => {
      const words = `${row.permission} ${row.group} ${row.meaning}`.toLowerCase()
      return wanted.every((word) => words.includes(word))
    })
    .map((row) => (role ? { ...row, cells: row.cells.filter(({ subject }) => subject === role) } : row))
    .filter(({ cells }) => !own || cells.some(differs))
    .filter(({ cells }) => !never || (cells.every(isUnused) && cells.some(({ allowed }) => allowed)))
}

/** The rows under the headings of their groups, in order. */
export function grouped(rows: Row[]): [string, Row[]][] {
  const groups = new Map<string, Row[]>()
  for (const row of rows) groups.set(row.group, [...(groups.get(row.group) ?? []), row])
  return [...groups]
}
