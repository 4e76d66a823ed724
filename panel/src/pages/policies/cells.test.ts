import { expect, test } from 'vitest'
import { countOf, differs, filtered, grouped, isEdited, rowsOf } from './cells'
import { cellName } from './names'

const base = 'g, OWNER, ADMIN\ng, ADMIN, OPERATOR\ng, OPERATOR, VIEWER\np, VIEWER, *, skill.edit, deny\n'
const given = {
  policy: {
    version: 'v1',
    text: 'p, OPERATOR, 7, contact.view, allow\n',
    tokenCap: ['contact.view'],
    files: [{ file: 'policy.csv', text: base, editable: false }],
    roles: ['OWNER', 'ADMIN', 'OPERATOR', 'VIEWER'].map((role) => ({
      role: role as 'OWNER',
      permissions: role === 'VIEWER' ? [] : ['contact.view'],
    })),
    problems: [],
    expectations: [],
  },
  permissions: [
    { permission: 'contact.view', group: 'contact', meaning: 'See contacts.' },
    { permission: 'skill.edit', group: 'skill', meaning: 'Edit skills.' },
  ],
  general: {
    ok: true,
    changes: [{ subject: 'OPERATOR', permission: 'contact.view', allowed: false, decidedBy: null }],
  },
  text: 'p, OPERATOR, 7, contact.view, allow\np, VIEWER, 7, contact.view, allow\n',
  changes: undefined,
  uses: undefined,
}
const cellOf = (rows: ReturnType<typeof rowsOf>, permission: string, subject: string) => {
  const cell = rows
    .find((row) => row.permission === permission)
    ?.cells.find((each) => each.subject === subject)
  if (!cell) throw new Error(`${permission} ${subject}`)
  return cell
}

test('a cell is what the service says of the draft, and until then what its own line says', () => {
  const pending = cellOf(rowsOf(given), 'contact.view', 'VIEWER')
  expect(pending).toMatchObject({ allowed: true, inForce: false, general: false, own: 'allow', fixed: null })
  expect(isEdited(pending)).toBe(true)
  const refused = { ...given, changes: [] }
  expect(cellOf(rowsOf(refused), 'contact.view', 'VIEWER').allowed).toBe(false)
  const changes = [{ subject: 'ADMIN', permission: 'skill.edit', allowed: true, decidedBy: null }]
  expect(cellOf(rowsOf({ ...given, changes }), 'skill.edit', 'ADMIN').allowed).toBe(true)
  const own = cellOf(rowsOf(given), 'contact.view', 'OPERATOR')
  expect(own).toMatchObject({ allowed: true, general: false, own: 'allow' })
  expect(isEdited(own)).toBe(false)
})

test('only the operator changes what tokens can have, and what lies above the ceiling', () => {
  const rows = rowsOf(given)
  expect(cellOf(rows, 'contact.view', 'service_token').fixed).toBe('token')
  expect(cellOf(rows, 'skill.edit', 'VIEWER').fixed).toMatchObject({ line: 4 })
  expect(cellOf(rows, 'skill.edit', 'OPERATOR').fixed).toBeNull()
})

test('never used is what a shown role may do, but no recent call needed', () => {
  const never = (uses: Parameters<typeof rowsOf>[0]['uses'], role?: string) =>
    filtered(rowsOf({ ...given, uses }), { never: true, role }).map(({ permission }) => permission)
  const uses = [{ subject: 'OWNER', permission: 'contact.view', allowed: 2, refused: 0 }]
  expect(never(undefined), 'not known yet').toEqual([])
  expect(never([]), 'no one may edit skills').toEqual(['contact.view'])
  expect(never(uses)).toEqual([])
  expect(never(uses, 'ADMIN')).toEqual(['contact.view'])
  const owner = cellOf(rowsOf({ ...given, uses }), 'contact.view', 'OWNER')
  expect(cellName(owner)).toBe('contact.view for Owner: yes, 2 calls allowed')
})

test('a cell counts the calls with the result that it shows', () => {
  const uses = ['OWNER', 'VIEWER'].map((subject) => ({
    subject,
    permission: 'contact.view',
    allowed: 2,
    refused: 1,
  }))
  const counted = (subject: string) =>
    countOf(cellOf(rowsOf({ ...given, text: given.policy.text, uses }), 'contact.view', subject))
  expect([counted('OWNER'), counted('VIEWER'), counted('ADMIN')]).toEqual([2, 1, 0])
})

test('filters narrow rows and columns', () => {
  const rows = rowsOf(given)
  expect(differs(cellOf(rows, 'contact.view', 'VIEWER'))).toBe(true)
  expect(differs(cellOf(rows, 'contact.view', 'ADMIN'))).toBe(false)
  expect(filtered(rows, { own: true }).map(({ permission }) => permission)).toEqual(['contact.view'])
  expect(filtered(rows, { own: true, role: 'ADMIN' })).toEqual([])
  expect(filtered(rows, { q: 'EDIT sk' }).map(({ permission }) => permission)).toEqual(['skill.edit'])
  expect(filtered(rows, { role: 'VIEWER' }).every(({ cells }) => cells.length === 1)).toBe(true)
  expect(grouped(rows).map(([group]) => group)).toEqual(['contact', 'skill'])
})
