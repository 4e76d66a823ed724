// Extracts a message's text by its kind. Agents and channels wrote the content, so it may have any shape. Pure, tested.
import type { Json } from '../../api/graphql'

export interface Content {
  text: string
  /** TEXT only: whether it is Markdown. */
  isMarkdown: boolean
  /** Mail only. */
  subject?: string
  tool?: string
  callId?: string
  input?: Json
  output?: Json
  isError?: boolean
  approvalId?: number
  /** EVENT only: the conversation that it is about. */
  conversationId?: number
  event?: string
  code?: string
}

export function contentOf(content: Json): Content {
  const fields = typeof content === 'object' && content !== null && !Array.isArray(content) ? content : {}
  const string = (name: string) => (typeof fields[name] === 'string' ? (fields[name] as string) : undefined)
  const id = (name: string) => {
    const id = Number(fields[name])
    return Number.isSafeInteger(id) && id > 0 ? id : undefined
  }
  return {
    text: string('text') ?? string('caption') ?? string('transcript') ?? '',
    isMarkdown: fields.format !== 'plain',
    subject: string('subject'),
    tool: string('tool'),
    callId: string('call_id'),
    input: fields.input,
    output: fields.output,
    isError: fields.is_error === true,
    approvalId: id('approval_id'),
    conversationId: id('conversation_id'),
    event: string('event'),
    code: string('code'),
  }
}

/** How the answer to a call begins while a person decides about it. */
export const ASKED = 'Asked. No answer yet'

/** Whether the result of a call only says that a person was asked. Agents may wrap it. */
export const isAsked = (output: Json | undefined): boolean => JSON.stringify(output ?? null).includes(ASKED)

const KIND_WORDS: Record<string, string> = {
  THINKING: 'Thought',
  TOOL_CALL: 'Called a tool',
  TOOL_RESULT: 'Result of a tool',
  FILE: 'File',
  VOICE: 'Recording',
  APPROVAL: 'Asked for a decision',
  EVENT: 'Event',
  ERROR: 'Error',
}

/** A one-line preview. */
export function lineOf(kind: string, content: Json): string {
  const { text, tool, event } = contentOf(content)
  if (kind === 'TOOL_CALL' && tool) return `Called ${tool}`
  const line = text.replaceAll(/\s+/g, ' ').trim().slice(0, 400)
  return line || event || KIND_WORDS[kind] || kind
}
