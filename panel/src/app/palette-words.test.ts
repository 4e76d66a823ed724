import { expect, test } from 'vitest'
import { commandOf, detailWords, kindWords } from './palette-words'

test('a verb before a name is what to do with an agent', () => {
  expect(commandOf('stop marlow')).toEqual({ verb: 'stop', rest: 'marlow' })
  expect(commandOf('Talk to Ada B')).toEqual({ verb: 'talk to', rest: 'Ada B' })
  expect(commandOf('stop ')).toEqual({ verb: null, rest: 'stop ' })
  expect(commandOf('stopwatch')).toEqual({ verb: null, rest: 'stopwatch' })
})

test('names of the schema read as words, and texts of people as they are', () => {
  expect(detailWords('CHANNEL', 'CODE_HOST')).toBe('Code host')
  expect(detailWords('CHANNEL', 'EMAIL')).toBe('E-mail')
  expect(detailWords('CREDENTIAL', 'api-key')).toBe('API key')
  expect(detailWords('MCP_SERVER', 'HTTP')).toBe('HTTP')
  expect(detailWords('AGENT', 'ACME_BOT')).toBe('ACME_BOT')
  expect(kindWords('MCP_SERVER')).toBe('MCP servers')
})
