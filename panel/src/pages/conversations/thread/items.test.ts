import { expect, test } from 'vitest'
import type { MessageRecord } from '../../../app/thread/fields'
import { itemsOf } from './items'

let last = 0
function message(part: Partial<MessageRecord>): MessageRecord {
  last += 1
  return {
    id: last,
    seq: last,
    role: 'ASSISTANT',
    kind: 'TEXT',
    content: { text: 'x' },
    createdAt: '2026-03-02T10:00:00Z',
    authorName: null,
    authorUserId: null,
    isUnproven: false,
    turnId: 1,
    ...part,
  } as MessageRecord
}
const dayOf = (at: string) => at.slice(0, 10)
const shape = (messages: MessageRecord[], newFrom: number | null = null) =>
  itemsOf(messages, newFrom, dayOf).map((item) =>
    item.is === 'message'
      ? `${item.message.kind}${item.result ? '+result' : ''}${item.follows ? '↑' : ''}`
      : item.is,
  )

test('a result stands inside its call, and one without a call stands alone', () => {
  const call = message({ kind: 'TOOL_CALL', role: 'TOOL', content: { tool: 'sh', call_id: 'a' } })
  const result = message({ kind: 'TOOL_RESULT', role: 'TOOL', content: { call_id: 'a', output: 1 } })
  const alone = message({ kind: 'TOOL_RESULT', role: 'TOOL', content: { call_id: 'b', output: 1 } })
  expect(shape([call, result, alone])).toEqual(['day', 'TOOL_CALL+result', 'TOOL_RESULT'])
})

test('a name that is used again in a later turn is another call', () => {
  const one = message({ kind: 'TOOL_CALL', turnId: 1, content: { call_id: 'a' } })
  const two = message({ kind: 'TOOL_RESULT', turnId: 2, content: { call_id: 'a' } })
  expect(shape([one, two])).toEqual(['day', 'TOOL_CALL', 'TOOL_RESULT'])
})

test('days are separated, and messages close to each other are grouped', () => {
  const messages = [
    message({}),
    message({ createdAt: '2026-03-02T10:01:00Z' }),
    message({ createdAt: '2026-03-02T11:00:00Z' }),
    message({ createdAt: '2026-03-03T09:00:00Z' }),
  ]
  expect(shape(messages)).toEqual(['day', 'TEXT', 'TEXT↑', 'TEXT', 'day', 'TEXT'])
})

test('an unproven sender differs from a proven one', () => {
  const said = (isUnproven: boolean) => message({ role: 'USER', authorName: 'Ada', isUnproven })
  expect(shape([said(false), said(true), said(true), said(false)])).toEqual([
    'day',
    'TEXT',
    'TEXT',
    'TEXT↑',
    'TEXT',
  ])
})

test('new messages begin at one place', () => {
  const messages = [message({}), message({}), message({})]
  expect(shape(messages, messages[1]?.seq)).toEqual(['day', 'TEXT', 'new', 'TEXT', 'TEXT↑'])
})
