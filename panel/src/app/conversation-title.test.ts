import { expect, test } from 'vitest'
import { withoutCode } from './conversation-title'

test('the code of an error or event is not shown, and other messages are left alone', () => {
  expect(withoutCode('ERROR', 'INTERRUPTED The agent ended')).toBe('The agent ended')
  expect(withoutCode('ERROR', 'The agent ended')).toBe('The agent ended')
  expect(withoutCode('EVENT', 'Ada took over. TAKEN_OVER')).toBe('Ada took over.')
  expect(withoutCode('EVENT', 'Ada took over.')).toBe('Ada took over.')
  expect(withoutCode('TEXT', 'NASA called')).toBe('NASA called')
})
