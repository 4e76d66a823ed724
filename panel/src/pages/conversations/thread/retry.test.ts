import { expect, test } from 'vitest'
import type { MessageRecord } from '../../../app/thread/fields'
import { repeatable } from './retry'

const message = (part: Partial<MessageRecord>) =>
  ({
    role: 'USER',
    kind: 'TEXT',
    content: { text: 'Sail' },
    authorUserId: 7,
    turnId: 1,
    attachments: [],
    ...part,
  }) as MessageRecord
const error = (code: string, turnId = 1) =>
  message({ role: 'SYSTEM', kind: 'ERROR', content: { code, text: 'no' }, authorUserId: null, turnId })

test('a turn that failed is repeated by the person who asked for it', () => {
  expect(repeatable([message({}), error('INTERRUPTED')], 7)).toBe('Sail')
  expect(repeatable([message({}), error('FAILED')], 7)).toBe('Sail')
  expect(repeatable([message({}), error('FAILED')], 8)).toBeNull()
})

test('a turn that did not end, or is not the last, or had files, is not repeated', () => {
  expect(repeatable([], 7)).toBeNull()
  expect(repeatable([message({}), error('BLOCKED')], 7)).toBeNull()
  expect(repeatable([message({}), error('FAILED'), message({})], 7)).toBeNull()
  expect(repeatable([message({ turnId: 2 }), error('FAILED')], 7)).toBeNull()
  expect(repeatable([message({ attachments: [{}] as never }), error('FAILED')], 7)).toBeNull()
})
