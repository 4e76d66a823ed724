import { expect, test } from 'vitest'
import { cutWords, endsInWords } from './cut-words'

test('what a stop ends is counted', () => {
  expect(endsInWords(2, 1)).toBe('ends 2 turns and withdraws 1 approval')
  expect(endsInWords(1, 0)).toBe('ends 1 turn')
  expect(endsInWords(0, 2)).toBe('withdraws 2 approvals')
  expect(endsInWords(0, 0)).toBe(null)
})

test('who ended it is named, if a person did', () => {
  expect(cutWords('Ada', 'AGENT')).toBe('Ada stopped the agent')
  expect(cutWords('Ada', 'ORGANIZATION')).toBe('Ada stopped all agents')
  expect(cutWords(null, null)).toBe(null)
})
