import { expect, test } from 'vitest'
import { placeAt } from './places'

test('a path leads to its page', () => {
  const at = (path: string) => placeAt(path)?.id
  expect(at('/o/7')).toBe('overview')
  expect(at('/o/7/')).toBe('overview')
  expect(at('/o/7/policies')).toBe('policies')
  expect(at('/o/7/agents/12')).toBe('agents')
  expect(at('/o/7/nowhere')).toBeUndefined()
})
