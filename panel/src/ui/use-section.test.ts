import { expect, test } from 'vitest'
import { withoutSaved } from './use-section'

test('what was typed while a form was being saved stays in it', () => {
  const saved = { city: 'Graz', name: 'Ada' }
  expect(withoutSaved({ city: 'Graz', name: 'Ada' }, saved)).toEqual({})
  expect(withoutSaved({ city: 'Graz two', name: 'Ada' }, saved)).toEqual({ city: 'Graz two' })
  expect(withoutSaved({ city: 'Graz', note: null }, saved)).toEqual({ note: null })
})
