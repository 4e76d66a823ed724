// The lines of policy texts, read and written as the service does (src/domain/policies/lines.rs). No React here.

export type Effect = 'allow' | 'deny'

/** A `p` line decides about a cell, an `e` line expects a result of it. */
export type Kind = 'p' | 'e'

/** A `p` or an `e` line. */
export interface RuleLine {
  /** Its number, starting at 1. */
  line: number
  subject: string
  permission: string
  effect: Effect
}

export type Cell = Pick<RuleLine, 'subject' | 'permission'>

/** The effect of a text's own line about a cell; null without such a line. Without a kind: of a `p` line. */
export type Change = Cell & { effect: Effect | null; kind?: Kind }

/** Whether a file has an organization's own rules: `orgs/7.csv`. */
export const isOwnFile = (file: string) => file.startsWith('orgs/')

export const isSame = (one: Cell, other: Cell) =>
  one.subject === other.subject && one.permission === other.permission

const fieldsOf = (line: string) => line.split(',').map((field) => field.trim())

/** Who, what and the effect, if the line is of this kind. An `e` line does not name the organization. */
function partsOf(line: string, kind: Kind): string[] {
  const [first, ...fields] = fieldsOf(line)
  if (first !== kind) return []
  return kind === 'p' ? fields.toSpliced(1, 1) : fields
}

/** The lines of a kind that can be read. The service reports the others. */
export function ruleLines(text: string, kind: Kind = 'p'): RuleLine[] {
  return text.split('\n').flatMap((line, index) => {
    const [subject, permission, effect, ...more] = partsOf(line, kind)
    const isRule = more.length === 0 && (effect === 'allow' || effect === 'deny')
    return isRule && subject && permission ? [{ line: index + 1, subject, permission, effect }] : []
  })
}

export const effectIn = (lines: readonly RuleLine[], cell: Cell): Effect | null =>
  lines.find((line) => isSame(line, cell))?.effect ?? null

/** Sets the line about a cell: replaces or appends it, or removes it. All other lines stay, with their comments. */
export function setLine(text: string, org: number, { effect, kind = 'p', ...cell }: Change): string {
  const end = text.includes('\r\n') ? '\r\n' : '\n'
  const kept = text.match(/[^\n]*\n|[^\n]+$/g) ?? []
  const about = kind === 'p' ? `${cell.subject}, ${org}` : cell.subject
  const written = effect ? `${kind}, ${about}, ${cell.permission}, ${effect}${end}` : ''
  const at = kept.findIndex((line) => {
    const [subject, permission] = partsOf(line, kind)
    return subject === cell.subject && permission === cell.permission
  })
  if (at >= 0) return kept.toSpliced(at, 1, ...(written ? [written] : [])).join('')
  return text && written && !text.endsWith('\n') ? text + end + written : text + written
}

/** The cells about which two texts have different lines, as changes of the first one. */
export function cellChanges(before: string, after: string): Change[] {
  return (['p', 'e'] as const).flatMap((kind) => {
    const [old, now] = [ruleLines(before, kind), ruleLines(after, kind)]
    const gone = old.filter((line) => effectIn(now, line) === null).map((line) => ({ ...line, effect: null }))
    const set = now.filter((line) => effectIn(old, line) !== line.effect)
    return [...gone, ...set].map(({ subject, permission, effect }) => ({ kind, subject, permission, effect }))
  })
}

/**
 * Finds the line of the operator's policy that no organization can overrule: it denies the cell's permission to its role,
 * or to one above.
 */
export function ceilingOf(base: string): (cell: Cell) => RuleLine | undefined {
  const denials = ruleLines(base).filter(({ effect }) => effect === 'deny')
  const parents = base
    .split('\n')
    .map(fieldsOf)
    .filter(([kind]) => kind === 'g')
  /** Whether a role has everything that another one has. */
  const includes = (role: string, lower: string): boolean =>
    role === lower || parents.some(([, from, to]) => from === role && to !== undefined && includes(to, lower))
  return ({ subject, permission }) =>
    denials.find((line) => line.permission === permission && includes(line.subject, subject))
}
