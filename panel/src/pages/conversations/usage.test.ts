import { expect, test } from 'vitest'
import { tokenWords } from './usage'

const none = { inputTokens: null, outputTokens: null, cacheReadTokens: null, cacheWriteTokens: null }

test('what the agent did not report is not made up', () => {
  expect(tokenWords(none)).toBeNull()
})

test('tokens read as numbers', () => {
  expect(tokenWords({ ...none, inputTokens: '1200', outputTokens: '0', cacheReadTokens: '0' })).toBe(
    '1,200 read, 0 written',
  )
})
