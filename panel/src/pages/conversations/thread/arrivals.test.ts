import { expect, test } from 'vitest'
import type { MessageRecord } from '../../../app/thread/fields'
import { announceable, arrivalWords } from './arrivals'

const names = {
  agent: 'harbour',
  agentAvatar: null,
  isChannelOff: false,
  viewer: { id: 7, name: 'Ada', avatarUrl: null },
}
const message = (part: Partial<MessageRecord>) =>
  ({
    role: 'ASSISTANT',
    kind: 'TEXT',
    content: { text: 'All is well.' },
    authorName: null,
    authorUserId: null,
    isUnproven: false,
    ...part,
  }) as MessageRecord

test('what others say is read out, but neither thoughts nor tools nor one’s own words', () => {
  const said = message({})
  const asked = message({ kind: 'APPROVAL', role: 'SYSTEM' })
  const folded = (['THINKING', 'TOOL_CALL', 'TOOL_RESULT'] as const).map((kind) => message({ kind }))
  const mine = message({ role: 'USER', authorUserId: 7 })
  expect(announceable([said, ...folded, mine, asked], 7)).toEqual([said, asked])
})

test('one message is read with its author, several are counted and the last one is read', () => {
  expect(arrivalWords([message({})], names)).toBe('harbour: All is well.')
  const bob = message({ role: 'USER', authorName: 'Bob', content: { text: 'And\n now?' } })
  expect(arrivalWords([message({}), bob], names)).toBe('2 new messages. Bob: And now?')
  expect(arrivalWords([message({ kind: 'FILE', content: {} })], names)).toBe('harbour: File')
})
