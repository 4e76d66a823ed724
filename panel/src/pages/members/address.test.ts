import { expect, test } from 'vitest'
import { addressRefusal } from './address'

test('a domain without an ending is refused, and nothing else', () => {
  expect(addressRefusal('bob@example')).toMatch('“example” has no ending')
  expect(addressRefusal('bob@example.com')).toBeNull()
  expect(addressRefusal('bob@')).toBeNull()
  expect(addressRefusal('bob')).toBeNull()
})
