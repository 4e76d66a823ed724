import { expect, test } from 'vitest'
import {
  aboutOf,
  answerWords,
  categoryWords,
  inputLine,
  isHighRisk,
  KINDS,
  outcomeWords,
  riskWords,
} from './words'

test('what is risky, or marked high or critical without a number, takes a held press', () => {
  expect(isHighRisk({ risk: 69, severity: 'CRITICAL' })).toBe(false)
  expect(isHighRisk({ risk: 69, severity: 'MEDIUM' })).toBe(false)
  expect(isHighRisk({ risk: 70, severity: 'HIGH' })).toBe(true)
  expect(isHighRisk({ risk: null, severity: 'CRITICAL' })).toBe(true)
  expect(isHighRisk({ risk: null, severity: 'HIGH' })).toBe(true)
  expect(isHighRisk({ risk: null, severity: 'MEDIUM' })).toBe(false)
  for (const category of ['deleting', 'Deletion', 'money'])
    expect(isHighRisk({ risk: 10, severity: 'LOW', category })).toBe(true)
  expect(isHighRisk({ risk: 10, severity: 'LOW', category: 'reading' })).toBe(false)
})

test('the end of an approval names who decided', () => {
  const ended = {
    status: 'RESOLVED',
    outcome: 'APPROVED',
    question: null,
    answer: null,
    decidedVia: 'GRAPHQL',
  } as const
  const decidedBy = { id: 7, kind: 'USER', name: 'Ada Admin' } as const
  expect(outcomeWords({ ...ended, decidedBy })).toBe('Approved by Ada Admin')
  expect(outcomeWords({ ...ended, decidedBy }, 7)).toBe('Approved by you')
  expect(outcomeWords({ ...ended, decidedBy, decidedVia: 'CHANNEL' })).toBe('Approved by Ada Admin in a chat')
  expect(outcomeWords({ ...ended, status: 'EXPIRED', outcome: 'EXPIRED', decidedBy: null })).toMatch(
    /without a decision/,
  )
  const system = { id: null, kind: 'SYSTEM', name: null } as const
  expect(outcomeWords({ ...ended, status: 'DISMISSED', outcome: 'WITHDRAWN', decidedBy: system })).toMatch(
    /no longer waits/,
  )
})

test('an answer is shown by its labels, not its ids', () => {
  const question = {
    text: 'Which?',
    multiple: true,
    allowText: true,
    options: [
      { id: 'a', label: 'Red', description: null },
      { id: 'b', label: 'Blue', description: null },
    ],
  }
  expect(answerWords({ question, answer: { options: ['b', 'a'], text: 'both, please' } })).toBe(
    'Blue, Red – both, please',
  )
})

test('risk, category and input read as words', () => {
  expect(riskWords({ risk: 85, severity: 'CRITICAL' })).toBe('Risk 85 of 100: critical')
  expect(riskWords({ risk: null, severity: 'LOW' })).toBe('Severity: low')
  expect(categoryWords('data_loss')).toBe('Data loss')
  expect(
    inputLine({ request: { tool: 'sh', input: { a: 1 }, digest: null }, question: null, body: null }),
  ).toBe('sh {"a":1}')
})

test('a withdrawn approval names who ended its turn', () => {
  const ended = {
    status: 'DISMISSED',
    outcome: 'WITHDRAWN',
    decidedBy: null,
    question: null,
    answer: null,
    decidedVia: 'SYSTEM',
  } as const
  expect(outcomeWords(ended)).toBe('Withdrawn: the agent no longer waits')
  expect(outcomeWords({ ...ended, withdrawnBy: 'Ada', withdrawnWith: 'AGENT' })).toBe(
    'Withdrawn: Ada stopped the agent',
  )
})

test('ended approvals of every kind no longer wait', () => {
  expect(aboutOf({ kind: 'ACTION', status: 'PENDING' })).toBe('The agent wants to do this and waits.')
  for (const status of ['RESOLVED', 'EXPIRED', 'DISMISSED'] as const) {
    expect(aboutOf({ kind: 'ACTION', status })).toBe('The agent asked to do this.')
    for (const kind of Object.keys(KINDS) as (keyof typeof KINDS)[])
      expect(aboutOf({ kind, status })).not.toMatch(/waits|can’t| is | are /)
  }
})
