import { expect, test } from 'vitest'
import type { CellState, Row } from './cells'
import { expectationOf, expectationsOf, skippedIn } from './expectations'
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
  ({ ok: false, problems: [{ file, line: 3, reason }], changes: [], expectations: [] }) as Proposal
const results = (proposal: Proposal | undefined | null, text = given.text) =>
  expectationsOf({ ...given, proposal, text }).map(({ isMet }) => isMet)

test('expectations are compared with the text in force and with an accepted draft', () => {
  expect(expectationsOf(given)).toEqual([
    { subject: 'OWNER', place: '*', line: null, permission: 'skill.edit', effect: 'allow', isMet: true },
    { subject: 'VIEWER', place: '7', line: null, permission: 'skill.edit', effect: 'deny', isMet: false },
  ])
  expect(results({ ok: true, problems: [], changes: [], expectations: [] })).toEqual([true, false])
  expect(results(null, '\n'), 'without own rules, those of `default` apply').toEqual([true, false, true])
  expect([skippedIn(expected, '\n'), skippedIn(expected, given.text)]).toEqual([0, 1])
})

test('for a refused draft, the service says what fails', () => {
  const reason = 'expected deny of skill.edit to VIEWER, who may in organization 7: orgs/7.csv:1 decides'
  expect(results(refused('expectations.csv', reason))).toEqual([true, false])
  expect(results(refused('orgs/7.csv', 'duplicates line 1')), 'not judged').toEqual([undefined, undefined])
  expect(results(undefined), 'pending').toEqual([undefined, undefined])
})

test('the organization’s own are as the service judges them, and come first', () => {
  const text =
    '# why\ne, OWNER, skill.edit, allow\ne , VIEWER,skill.edit , deny\ne, VIEWER, skill.fly, deny\n'
  const own = (proposal: Proposal | undefined | null) =>
    expectationsOf({ ...given, text, proposal }).filter(({ line }) => line !== null)
  expect(own(null), 'in force').toEqual([
    { subject: 'OWNER', place: null, line: 2, permission: 'skill.edit', effect: 'allow', isMet: true },
    { subject: 'VIEWER', place: null, line: 3, permission: 'skill.edit', effect: 'deny', isMet: false },
  ])
  const reason = 'expected deny of skill.edit to VIEWER, who may in organization 7: orgs/7.csv:1 decides'
  const judged = {
    ...refused('orgs/7.csv', reason),
    expectations: [
      { line: 2, met: true },
      { line: 3, met: false },
    ],
  }
  expect(own(judged).map(({ isMet }) => isMet)).toEqual([true, false])
  expect(results(judged), 'the operator’s are judged too').toEqual([true, true])
  expect(own(undefined).map(({ isMet }) => isMet)).toEqual([undefined, undefined])
  const all = expectationsOf({ ...given, text })
  expect(expectationOf(all, { subject: 'OWNER', permission: 'skill.edit' })?.line).toBe(2)
  expect(expectationOf(all, { subject: 'OWNER', permission: 'skill.fly' })).toBeUndefined()
})
