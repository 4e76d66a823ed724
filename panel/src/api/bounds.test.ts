import { expect, test } from 'vitest'
import { type BoundsKey, boundsOf, refusal } from './bounds'

test('a text is measured in characters as people count them, not in UTF-16 units', () => {
  expect(refusal('🙂🙂', { maxLength: 2 })).toBeNull()
  expect(refusal('🙂🙂🙂', { maxLength: 2 })).toBe('At most 2 characters; these are 3.')
})

test('a blank text, a second line and letters among digits are refused', () => {
  expect(refusal('   ', { notBlank: true })).toBe('This can’t be empty.')
  expect(refusal('a\nb', { line: true })).toBe('One line only.')
  expect(refusal('12a', { digits: true })).toBe('Digits only.')
})

test('numbers have both ends named', () => {
  expect(refusal(0, { min: 1, max: 9 })).toBe('From 1 to 9.')
  expect(refusal(Number.NaN, {})).toBe('Type a number.')
  expect(refusal(5, { min: 1, max: 9 })).toBeNull()
})

test('a list is measured, and each of its values', () => {
  expect(refusal(['a', 'b'], { maxItems: 1 })).toBe('At most 1 entries.')
  expect(refusal(['a', ''], { minLength: 1, maxItems: 3 })).toBe('This can’t be empty.')
})

test('a place without bounds refuses nothing', () => {
  expect(refusal('PAUSE', boundsOf('UpdateAgentInput.costGuardAction' as BoundsKey))).toBeNull()
})
