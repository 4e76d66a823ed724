import { expect, test } from 'vitest'
import { type BoundsKey, boundsOf, refusal, refusalsOf, refusalWhileTyping } from './bounds'

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

test('a folder’s name has no slashes and does not begin with a dot, as the service says', () => {
  const name = boundsOf('CreateSkillInput.name')
  expect(refusal('Tone of voice!', name)).toBeNull()
  for (const wrong of ['a/b', 'a\\b', '.hidden', ' .hidden'])
    expect(refusal(wrong, name)).toBe('No slashes, and no dot at the beginning.')
})

test('what is half typed is refused only for what more typing can not mend', () => {
  const name = boundsOf('CreateSkillInput.name')
  expect(refusalWhileTyping('tone/', name)).toBe('No slashes, and no dot at the beginning.')
  expect(refusalWhileTyping('x'.repeat(81), name)).toMatch('At most 80')
  for (const half of ['', ' ']) expect(refusalWhileTyping(half, name)).toBeNull()
  expect(refusalWhileTyping(Number.NaN, { min: 1 })).toBeNull()
  expect(refusalWhileTyping(1, { min: 10, max: 90 })).toBeNull()
  expect(refusalWhileTyping('', { digits: true })).toBeNull()
})

test('all invalid fields of an input are named at once, and omitted ones are not', () => {
  const wrong = refusalsOf('CreateImageInput', { name: '', reference: ' ', description: null, profile: null })
  expect(Object.keys(wrong)).toEqual(['name', 'reference'])
})
