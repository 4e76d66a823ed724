import { expect, test } from 'vitest'
import { boundsOf } from '../../api/bounds'
import { groupsOf, TRANSPORT_OPTIONS } from './transports'
import { initialOf, inputOf, storedOf } from './values'

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

test('calendars are lines with an id and perhaps a name', () => {
  const field = groupsOf('CALENDAR')[0]?.fields[0]
  if (!field) throw new Error('calendars have a field')
  const stored = [
    { id: 'a@example.com', name: 'Team, all' },
    { id: 'b', name: 'b' },
  ]
  const lines = storedOf({ calendar: { calendarWhitelist: stored } }, field)
  expect(lines).toEqual(['a@example.com, Team, all', 'b'])
  expect(inputOf({ [field.path]: lines })).toEqual({
    calendar: { calendarWhitelist: [{ id: 'a@example.com', name: 'Team, all' }, { id: 'b' }] },
  })
})

test('every field has an own path and bounds that the schema states', () => {
  for (const { value } of TRANSPORT_OPTIONS) {
    const fields = groupsOf(value).flatMap(({ fields }) => fields)
    expect(new Set(fields.map(({ path }) => path)).size).toBe(fields.length)
    for (const field of fields) {
      if (field.bounds) expect(boundsOf(field.bounds)).toBeDefined()
      expect(storedOf({}, field)).toEqual(initialOf(field))
    }
  }
})
