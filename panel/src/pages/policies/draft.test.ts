import { expect, test } from 'vitest'
import {
  begun,
  changed,
  clicked,
  type Draft,
  isChanged,
  rebased,
  restored,
  stored,
  textOf,
  typed,
} from './draft'
import { ceilingOf, cellChanges, setLine } from './lines'

const ORG = 7
const TEXT = '# top\np, VIEWER, 7, agent.edit, allow\n\n# end\np,OPERATOR ,7, agent.create,deny\n'
const cell = (subject: string, permission: string) => ({ subject, permission })
const click = (draft: Draft, at: ReturnType<typeof cell>, allowed: boolean) =>
  changed(draft, clicked(draft, at, allowed))

test('one line changes, and every other line and comment stays', () => {
  const set = (subject: string, permission: string, effect: 'allow' | 'deny' | null, text = TEXT) =>
    setLine(text, ORG, { subject, permission, effect })
  expect(set('OPERATOR', 'agent.create', 'allow')).toBe(
    TEXT.replace('p,OPERATOR ,7, agent.create,deny', 'p, OPERATOR, 7, agent.create, allow'),
  )
  expect(set('VIEWER', 'agent.create', 'deny')).toBe(`${TEXT}p, VIEWER, 7, agent.create, deny\n`)
  expect(set('VIEWER', 'agent.edit', null)).toBe(TEXT.replace('p, VIEWER, 7, agent.edit, allow\n', ''))
  expect(set('OWNER', 'agent.edit', null)).toBe(TEXT)
  expect(set('VIEWER', 'skill.edit', 'allow', '')).toBe('p, VIEWER, 7, skill.edit, allow\n')
  expect(set('VIEWER', 'skill.edit', 'allow', '# no end')).toBe('# no end\np, VIEWER, 7, skill.edit, allow\n')
  const windows = TEXT.replaceAll('\n', '\r\n')
  expect(set('VIEWER', 'agent.create', 'deny', windows)).toBe(
    `${windows}p, VIEWER, 7, agent.create, deny\r\n`,
  )
})

test.each([
  ['nothing', ''],
  ['comments and odd spaces', TEXT],
  ['a last line without an end', TEXT.trimEnd()],
  ['foreign line ends', TEXT.replaceAll('\n', '\r\n')],
  ['lines that can’t be read', `${TEXT}p, VIEWER, 7\nnonsense`],
])('cells changed and changed back leave the text as it was, byte for byte: %s', (_, text) => {
  const cells = [
    cell('VIEWER', 'contact.view'),
    cell('VIEWER', 'agent.edit'),
    cell('OPERATOR', 'agent.create'),
    cell('OWNER', 'skill.edit'),
  ]
  const there = cells.reduce((draft, at) => click(draft, at, false), begun('v1', text))
  expect(isChanged(there, ORG)).toBe(true)
  expect(textOf(there, ORG)).toContain('p, VIEWER, 7, contact.view, allow')
  // In another order, regardless of the current effect.
  const back = cells.reverse().reduce((draft, at) => click(draft, at, true), there)
  expect(textOf(back, ORG)).toBe(text)
  expect(isChanged(back, ORG)).toBe(false)
})

test('a click writes the opposite of what holds, or removes the own line', () => {
  const draft = begun('v1', TEXT)
  expect(clicked(draft, cell('VIEWER', 'skill.edit'), false).effect).toBe('allow')
  expect(clicked(draft, cell('VIEWER', 'skill.view'), true).effect).toBe('deny')
  expect(clicked(draft, cell('VIEWER', 'agent.edit'), true).effect).toBeNull()
  // Choosing the effect that the text already has changes nothing.
  expect(changed(draft, { ...cell('VIEWER', 'agent.edit'), effect: 'allow' }).cells).toEqual([])
  // After typing, a click and its undoing come back to what was typed.
  const own = typed(draft, `${TEXT}# typed`)
  const twice = click(click(own, cell('VIEWER', 'skill.edit'), false), cell('VIEWER', 'skill.edit'), true)
  expect(textOf(twice, ORG)).toBe(`${TEXT}# typed`)
})

test('the draft’s cells are applied to the newly published text', () => {
  const mine = click(
    click(begun('v1', TEXT), cell('VIEWER', 'agent.edit'), true),
    cell('ADMIN', 'mcp.edit'),
    true,
  )
  const theirs = `${TEXT}p, VIEWER, 7, skill.edit, allow\n`
  const both = rebased(mine, ORG, 'v2', theirs)
  expect(both.version).toBe('v2')
  expect(textOf(both, ORG)).toBe(
    `${theirs.replace('p, VIEWER, 7, agent.edit, allow\n', '')}p, ADMIN, 7, mcp.edit, deny\n`,
  )
  // Nothing is left if they made the same change.
  expect(isChanged(rebased(mine, ORG, 'v2', textOf(mine, ORG)), ORG)).toBe(false)
  expect(cellChanges(TEXT, TEXT)).toEqual([])
})

test('an expected result is a line beside the rules, and removing it leaves no trace', () => {
  const at = cell('VIEWER', 'agent.edit')
  const expected = changed(begun('v1', TEXT), { ...at, kind: 'e', effect: 'allow' })
  expect(textOf(expected, ORG)).toBe(`${TEXT}e, VIEWER, agent.edit, allow\n`)
  expect(changed(expected, { ...at, kind: 'e', effect: null }).cells).toEqual([])
  // A click changes the rule, and the expectation stays: the service refuses to publish both.
  const both = click(expected, at, true)
  const rule = 'p, VIEWER, 7, agent.edit, allow\n'
  expect(textOf(both, ORG)).toBe(`${TEXT.replace(rule, '')}e, VIEWER, agent.edit, allow\n`)
  expect(textOf(click(both, at, false), ORG)).toBe(textOf(expected, ORG))
  // One in the text is replaced and removed in its place.
  const inForce = 'e,VIEWER , agent.edit,allow\n'
  const set = (effect: 'deny' | null) => setLine(`${inForce}${rule}`, ORG, { ...at, kind: 'e', effect })
  expect(set('deny')).toBe(`e, VIEWER, agent.edit, deny\n${rule}`)
  expect(set(null)).toBe(rule)
  expect(textOf(rebased(expected, ORG, 'v2', rule), ORG)).toBe(`${rule}e, VIEWER, agent.edit, allow\n`)
})

test('a draft survives storage, and nonsense is none', () => {
  const draft = click(begun('v1', TEXT), cell('VIEWER', 'skill.edit'), false)
  expect(restored(stored(draft))).toEqual(draft)
  expect(restored('')).toBeNull()
  expect(restored('{"version":1}')).toBeNull()
})

test('the ceiling is a denial for the role or for one above', () => {
  const base = 'g, OWNER, ADMIN\ng, ADMIN, OPERATOR\ng, OPERATOR, VIEWER\np, OPERATOR, *, token.edit, deny\n'
  const ceiling = ceilingOf(base)
  expect(ceiling(cell('VIEWER', 'token.edit'))?.line).toBe(4)
  expect(ceiling(cell('OPERATOR', 'token.edit'))?.line).toBe(4)
  expect(ceiling(cell('ADMIN', 'token.edit'))).toBeUndefined()
  expect(ceiling(cell('VIEWER', 'token.view'))).toBeUndefined()
})
