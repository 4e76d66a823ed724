import { expect, test } from 'vitest'
import { decisionOf, spaced, valueText } from './words'

test('states read as on the page of the record, other names of the schema as words, and texts as they are', () => {
  expect(valueText('SPAWNING', 'status', 'agent')).toBe('Starting')
  expect(valueText('STOPPED', 'status', 'agent')).toBe('Stopped')
  expect(valueText('ON_FAILURE', 'restart_policy', 'agent')).toBe('On failure')
  expect(valueText('OPERATOR', 'role', 'member')).toBe('Operator')
  expect(valueText('ACME', 'name', 'agent')).toBe('ACME')
  expect(valueText('paused', 'status', 'agent')).toBe('paused')
})

test('lists are on one line', () => {
  expect(valueText(['a', 'b'], 'tags', null)).toBe('a, b')
  expect(valueText([], 'tags', null)).toBe('nothing')
})

test('an answered approval says how', () => {
  const fields = [
    { field: 'status', after: 'RESOLVED' },
    { field: 'outcome', after: 'DENIED' },
  ]
  expect(decisionOf({ operation: 'answerApproval', fields })).toBe('DENIED')
  expect(decisionOf({ operation: 'answerApproval', fields: [] })).toBeNull()
  expect(decisionOf({ operation: 'updateAgent', fields })).toBeNull()
})

test('an operation reads as an action', () => {
  expect(spaced('createMcpServer')).toBe('Create MCP server')
  expect(spaced('backupAgent')).toBe('Back up agent')
  expect(spaced('judgeAction')).toBe('Check an action')
  expect(spaced('seed')).toBe('Add sample data')
})
