import { expect, test } from 'vitest'
import type { MessageRecord } from '../../../app/thread/fields'
import { retryableTurn } from './retry'

const message = (part: Partial<MessageRecord>) =>
  ({ role: 'USER', kind: 'TEXT', content: { text: 'Sail' }, turnId: 1, ...part }) as MessageRecord
const error = (code: string, turnId = 1) =>
  message({ role: 'SYSTEM', kind: 'ERROR', content: { code, text: 'no' }, turnId })

test('the last turn is retried if it failed', () => {
  expect(retryableTurn([message({}), error('INTERRUPTED')])).toBe(1)
  expect(retryableTurn([message({}), error('FAILED')])).toBe(1)
})

test('a turn that did not end, is not the last, or was retried already is not retried', () => {
  expect(retryableTurn([])).toBeNull()
  expect(retryableTurn([message({}), error('BLOCKED')])).toBeNull()
  expect(retryableTurn([message({}), error('FAILED'), message({})])).toBeNull()
  expect(retryableTurn([message({ turnId: 2 }), error('FAILED')])).toBeNull()
})
