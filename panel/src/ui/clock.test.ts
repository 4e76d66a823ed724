import { expect, test } from 'vitest'
import { knownZone } from './clock'

test('a time zone that this browser does not know is none', () => {
  for (const known of ['Europe/Berlin', 'UTC', 'europe/berlin']) expect(knownZone(known)).toBe(known)
  for (const unknown of ['Factory', 'posixrules', 'Mars/Olympus', '', undefined]) {
    expect(knownZone(unknown), String(unknown)).toBe(undefined)
  }
})
