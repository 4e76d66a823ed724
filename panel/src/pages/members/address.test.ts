import { expect, test } from 'vitest'
import { addressHint } from './address'

test('a domain without an ending is pointed out, and nothing else', () => {
  expect(addressHint('bob@example')).toMatch('“example” has no ending')
  expect(addressHint('bob@example.com')).toBeUndefined()
  expect(addressHint('bob@')).toBeUndefined()
  expect(addressHint('bob')).toBeUndefined()
})
