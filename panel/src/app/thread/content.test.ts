import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { ASKED, contentOf, isAsked, lineOf } from './content'

test('content of any shape is read, and nothing of another type is believed', () => {
  expect(contentOf(null)).toMatchObject({ text: '', isMarkdown: true })
  expect(contentOf({ text: { html: '<b>' }, approval_id: 'x' })).toMatchObject({
    text: '',
    approvalId: undefined,
    conversationId: undefined,
  })
  expect(contentOf({ text: 'a', format: 'plain' }).isMarkdown).toBe(false)
  expect(contentOf({ approval_id: 12 }).approvalId).toBe(12)
  expect(contentOf({ conversation_id: 7 }).conversationId).toBe(7)
})

test('a preview is one line', () => {
  expect(lineOf('TEXT', { text: 'a\n\n b' })).toBe('a b')
  expect(lineOf('TOOL_CALL', { tool: 'sh' })).toBe('Called sh')
  expect(lineOf('APPROVAL', { approval_id: 3 })).toBe('Asked for a decision')
})

test('a result that only says that a person was asked is recognized, in the words of the service', () => {
  for (const file of ['egress/src/mcp/session.rs', 'host/src/mcp.rs'])
    expect(readFileSync(new URL(`../../../../crates/${file}`, import.meta.url), 'utf8')).toContain(
      `"${ASKED}`,
    )
  const text = `${ASKED}, and the call was not made. End your turn now.`
  for (const output of [text, { error: text }, [{ content: { text } }]]) expect(isAsked(output)).toBe(true)
  for (const output of [undefined, null, 'Asked.', { text: 'Refunded.' }]) expect(isAsked(output)).toBe(false)
})
