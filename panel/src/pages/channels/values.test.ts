import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { boundsOf } from '../../api/bounds'
import { type Direction, type FieldSpec, groupsOf, TRANSPORTS } from './transports'
import { initialOf, inputOf, missing, storedOf } from './values'

test('paths become the objects that the service takes', () => {
  const input = inputOf({
    'email.imap.host': 'imap.example.com',
    'email.imap.pass': { kind: 'set', value: 'secret' },
    'email.smtp.pass': { kind: 'remove' },
    'webhook.inboundSecret': { kind: 'keep' },
  })
  expect(input).toEqual({
    email: { imap: { host: 'imap.example.com', pass: 'secret' }, smtp: { pass: null } },
    webhook: {},
  })
})

test('a required field is named when it is empty, and tokens are complete or missing', () => {
  const field = (path: string) => {
    const found = Object.values(TRANSPORTS).flatMap(({ groups }) => groups.flatMap(({ fields }) => fields))
    return found.find((each) => each.path === path && (path !== 'botToken' || 'parts' in each)) as FieldSpec
  }
  const tokens = (value: string) => missing(field('botToken'), { kind: 'set', value })
  expect(missing(field('botToken'), { kind: 'keep' })).toMatch(/empty/)
  expect(tokens('xoxb-1 ')).toBe('Enter both: bot token and app token.')
  expect(tokens('xoxb-1 xapp-2')).toBeNull()
  expect(missing(field('webhook.outboundSecret'), { kind: 'keep' })).toBeNull()
  expect(missing(field('webhook.inboundSecret'), { kind: 'keep' })).toMatch(/empty/)
  expect(missing(field('email.imap.port'), null)).toMatch(/empty/)
})

test('a direction hides what it does not need', () => {
  const titles = (transport: string, direction: Direction) =>
    groupsOf(transport, direction).map(({ title }) => title)
  expect(titles('WEBHOOK', 'INBOUND')).toEqual(['Receiving'])
  expect(titles('WEBHOOK', 'OUTBOUND')).toEqual(['Sending'])
  expect(titles('WEBHOOK', 'BIDIRECTIONAL')).toHaveLength(2)
})

test('each transport is set up in three steps, and its guide exists', () => {
  for (const { setup, guide } of Object.values(TRANSPORTS)) {
    expect(setup).toHaveLength(3)
    expect(existsSync(`..${guide}`)).toBe(true)
  }
})

test('every field has an own path and bounds that the schema states', () => {
  for (const { groups } of Object.values(TRANSPORTS)) {
    const fields = groups.flatMap(({ fields }) => fields)
    expect(new Set(fields.map(({ path }) => path)).size).toBe(fields.length)
    for (const field of fields) {
      if (field.bounds) expect(boundsOf(field.bounds)).toBeDefined()
      expect(storedOf({}, field)).toEqual(initialOf(field))
    }
  }
})
