import { expect, test } from 'vitest'
import type { CellState, Row } from './cells'
import { expectationsOf } from './expectations'
import type { Proposal } from './queries'

const cell = (subject: string, permission: string, allowed: boolean) =>
  ({ subject, permission, allowed }) as CellState
const rows = [
  {
    permission: 'skill.edit',
    cells: [cell('OWNER', 'skill.edit', true), cell('VIEWER', 'skill.edit', true)],
  },
] as Row[]
const expected = `# The operator's
OWNER, *, skill.edit, allow
 VIEWER , 7, skill.edit, deny
VIEWER, default, skill.edit, allow
OWNER, *, skill.fly, allow
`
const given = { expected, text: 'p, VIEWER, 7, skill.edit, allow\n', rows, proposal: null }
const refused = (file: string, reason: string) =>
  ({ ok: false, problems: [{ file, line: 3, reason }], changes: [] }) as Proposal
const results = (proposal: Proposal | undefined | null, text = given.text) =>
  expectationsOf({ ...given, proposal, text }).map(({ isMet }) => isMet)

test('expectations are compared with the text in force and with an accepted draft', () => {
  expect(expectationsOf(given)).toEqual([
    { subject: 'OWNER', place: '*', permission: 'skill.edit', effect: 'allow', isMet: true },
    { subject: 'VIEWER', place: '7', permission: 'skill.edit', effect: 'deny', isMet: false },
  ])
  expect(results({ ok: true, problems: [], changes: [] })).toEqual([true, false])
  expect(results(null, '\n'), 'without own rules, those of `default` apply').toEqual([true, false, true])
})

test('for a refused draft, the service says what fails', () => {
  const reason = 'expected deny of skill.edit to VIEWER, who may in organization 7: orgs/7.csv:1 decides'
  expect(results(refused('expectations.csv', reason))).toEqual([true, false])
  expect(results(refused('orgs/7.csv', 'duplicates line 1')), 'not judged').toEqual([undefined, undefined])
  expect(results(undefined), 'pending').toEqual([undefined, undefined])
})
