import { expect, test } from 'vitest'
import { fixOf } from './fixes'

const TEXT =
  '# top\r\np, VIEWER, 7,  agent.edti , allow\r\np, VEIWER,7,skill.edit,allow\np, OWNER, 7, skill.edit, deny'
const fix = (line: number | null, reason: string, file = 'orgs/7.csv') => fixOf({ file, line, reason }, TEXT)

test('an unknown name becomes the nearest one, and everything else stays', () => {
  expect(fix(2, 'unknown permission "agent.edti" (did you mean "agent.edit"?)')).toEqual({
    label: 'Write agent.edit',
    text: TEXT.replace('agent.edti', 'agent.edit'),
  })
  expect(fix(3, 'unknown role "VEIWER" (did you mean "VIEWER"?)')?.text).toBe(
    TEXT.replace('VEIWER', 'VIEWER'),
  )
})

test('so it does in an expectation', () => {
  const problem = { file: 'orgs/7.csv', line: 1, reason: 'unknown role "VEIWER" (did you mean "VIEWER"?)' }
  expect(fixOf(problem, 'e, VEIWER, skill.edit, deny')?.text).toBe('e, VIEWER, skill.edit, deny')
})

test('a line that repeats another is removed, with its end', () => {
  expect(fix(2, 'duplicates line 1')?.text).toBe(TEXT.replace('p, VIEWER, 7,  agent.edti , allow\r\n', ''))
})

test('without an evident correction there is none', () => {
  expect(fix(2, 'unknown permission "fly"')).toBeNull()
  expect(fix(2, 'contradicts line 1, which says allow')).toBeNull()
  expect(fix(4, 'unknown role "VEIWER" (did you mean "VIEWER"?)'), 'another line').toBeNull()
  expect(fix(null, 'duplicates line 1')).toBeNull()
  expect(fix(2, 'duplicates line 1', 'policy.csv')).toBeNull()
})
