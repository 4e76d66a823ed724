import { expect, test } from 'vitest'
import { shellQuote } from './shell-quote'

test('a plain address stands as it is, anything that a shell would read is quoted', () => {
  expect(shellQuote('ada+work@example.org')).toBe('ada+work@example.org')
  expect(shellQuote("o'hara@example.org")).toBe("'o'\\''hara@example.org'")
  expect(shellQuote('$(id)@example.org')).toBe("'$(id)@example.org'")
})
