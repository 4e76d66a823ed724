import { expect, test } from 'vitest'
import { expiryOf } from './lifetime'

test('the default is left to the installation, never is null, and days count from now', () => {
  const now = Date.parse('2026-01-01T00:00:00Z')
  expect(expiryOf('DEFAULT', now)).toEqual({})
  expect(expiryOf('NEVER', now)).toEqual({ expiresAt: null })
  expect(expiryOf('30', now)).toEqual({ expiresAt: '2026-01-31T00:00:00.000Z' })
})
