import { expect, test } from 'vitest'
import { quoted } from './quoted'

test('a plain address stands as it is, anything that a shell would read is quoted', () => {
  expect(quoted('ada+work@example.org')).toBe('ada+work@example.org')
  expect(quoted("o'hara@example.org")).toBe("'o'\\''hara@example.org'")
  expect(quoted('$(id)@example.org')).toBe("'$(id)@example.org'")
})
