import { expect, test } from 'vitest'
import { problemWords } from './problem-words'

const permissions = [
  { permission: 'agent.delete', group: 'agent', meaning: 'Delete an agent.' },
  { permission: 'contact.view', group: 'contact', meaning: 'See contacts and their addresses.' },
]
const words = (file: string, line: number, reason: string) => {
  const said = problemWords({ file, line, reason }, permissions)
  return `${said.file}:${said.line} ${said.reason}`
}

test('a failed expectation is said in words, at the line that is to be changed', () => {
  const reason =
    'expected deny of agent.delete to VIEWER, who may in organization 1: orgs/1.csv:3 decides: p, VIEWER, 1, agent.delete, allow'
  expect(words('expectations.csv', 66, reason)).toBe(
    'orgs/1.csv:3 The operator requires: Viewers may not delete an agent (agent.delete). Line 3 allows it.',
  )
  expect(words('orgs/1.csv', 1, reason)).toBe(
    'orgs/1.csv:1 The organization expects: Viewers may not delete an agent (agent.delete). Line 3 allows it.',
  )
  expect(
    words(
      'orgs/1.csv',
      1,
      'expected allow of contact.view to OPERATOR, who may not in organization 1: policy.csv:9 decides: p, ADMIN, *, contact.view, deny',
    ),
  ).toBe(
    'orgs/1.csv:1 The organization expects: Operators may see contacts and their addresses (contact.view). Line 9 of policy.csv denies it.',
  )
  const noLine =
    'expected allow of agent.delete to VIEWER, who may not in organization 1: no line in policy.csv allows it'
  expect(words('orgs/1.csv', 2, noLine)).toBe(
    'orgs/1.csv:2 The organization expects: Viewers may delete an agent (agent.delete). No line allows it.',
  )
})

test('other problems stay as they are', () => {
  expect(words('orgs/1.csv', 2, 'duplicates line 1')).toBe('orgs/1.csv:2 duplicates line 1')
})
