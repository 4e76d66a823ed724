import { expect, test } from 'vitest'
import { sectionId } from './section-form-list'

test('a section has its title as its address', () => {
  expect(sectionId('Cost guard')).toBe('cost-guard')
  expect(sectionId('Server & image')).toBe('server-image')
})
