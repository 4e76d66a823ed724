import { expect, test } from 'vitest'
import type { MessageRecord } from '../../app/thread/fields'
import type { ConversationRecord } from './record'
import { fileName, transcriptOf } from './transcript'

const conversation = {
  id: 7,
  ref: 'AB12CD34',
  title: 'Ropes / lines',
  status: 'OPEN',
  agent: { name: 'Marlow' },
  contactName: 'Ada',
  channelName: null,
  createdAt: '2026-11-30T09:00:00Z',
} as ConversationRecord
const message = (part: Partial<MessageRecord>) =>
  ({
    __typename: 'Message',
    seq: 1,
    role: 'USER',
    kind: 'TEXT',
    content: { text: 'Coil the ropes' },
    authorName: null,
    createdAt: '2026-11-30T09:01:00Z',
    attachments: [],
    ...part,
  }) as unknown as MessageRecord

test('Markdown has every kind of message, and no text leaves its code block', () => {
  const text = transcriptOf('md', conversation, [
    message({
      authorName: 'Ada',
      attachments: [{ filename: 'a.pdf', mimeType: 'application/pdf', sizeBytes: 3 }] as never,
    }),
    message({ role: 'ASSISTANT', kind: 'THINKING', content: { text: 'one\ntwo' } }),
    message({ role: 'ASSISTANT', kind: 'TOOL_CALL', content: { tool: 'sh', input: { command: 'coil' } } }),
    message({ role: 'TOOL', kind: 'TOOL_RESULT', content: { output: '```\nout', is_error: true } }),
    message({ role: 'SYSTEM', kind: 'ERROR', content: { code: 'FAILED', text: 'It broke.' } }),
  ])
  expect(text).toContain(
    '# Ropes / lines\n\nAB12CD34 · Marlow · Ada\n\n## Ada, 2026-11-30T09:01:00Z\n\nCoil the ropes\n\n- a.pdf',
  )
  expect(text).toContain('## Marlow, 2026-11-30T09:01:00Z\n\n> one\n> two')
  expect(text).toContain('Called sh:\n\n```\n{\n  "command": "coil"\n}\n```')
  expect(text).toContain('## Tool, 2026-11-30T09:01:00Z\n\nFailed:\n\n````\n```\nout\n````')
  expect(text).toContain('## Muster, 2026-11-30T09:01:00Z\n\n**FAILED**: It broke.\n')
})

test('JSON has the messages as the service gave them', () => {
  const { conversation: about, messages } = JSON.parse(transcriptOf('json', conversation, [message({})]))
  expect(about).toMatchObject({ id: 7, agent: 'Marlow', contactName: 'Ada' })
  expect(messages[0]).toMatchObject({ seq: 1, content: { text: 'Coil the ropes' } })
  expect(messages[0]).not.toHaveProperty('__typename')
})

test('a file is named by the short code and the subject', () => {
  expect(fileName(conversation, 'md')).toBe('AB12CD34-Ropes-lines.md')
  expect(fileName({ id: 7, ref: 'AB12CD34', title: null }, 'json')).toBe('AB12CD34.json')
})
