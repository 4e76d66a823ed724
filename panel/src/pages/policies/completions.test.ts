import { expect, test } from 'vitest'
import { choicesAt } from './completions'

const PERMISSIONS = [
  { permission: 'agent.edit', group: 'agent', meaning: 'Change agents.' },
  { permission: 'agent.view', group: 'agent', meaning: 'See agents.' },
]
const at = (before: string) => {
  const found = choicesAt(before, 7, PERMISSIONS)
  return found && [found.written, ...found.choices.map(({ label }) => label)]
}

test('each field of a line has its choices', () => {
  expect(at('p, VI')).toEqual(['VI', 'OWNER', 'ADMIN', 'OPERATOR', 'VIEWER'])
  expect(at('p,VIEWER, ')).toEqual(['', '7'])
  expect(at('p, VIEWER, 7, agent.')).toEqual(['agent.', 'agent.edit', 'agent.view'])
  expect(at('p, VIEWER, 7, agent.view, d')).toEqual(['d', 'allow', 'deny'])
})

test('comments, complete names and the end of a rule have none', () => {
  expect(at('# p, VI')).toBeNull()
  expect(at('p')).toBeNull()
  expect(at('p, VIEWER')).toBeNull()
  expect(at('p, VIEWER, 7, agent.view, allow, ')).toBeNull()
})
