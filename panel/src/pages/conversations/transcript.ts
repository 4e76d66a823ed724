// A conversation as a file: Markdown to read, JSON for programs. Pure, tested.
import type { Json } from '../../api/graphql'
import { contentOf } from '../../app/thread/content'
import type { MessageRecord } from '../../app/thread/fields'
import { type ConversationRecord, nameOf } from './record'

export type Format = 'md' | 'json'

export function transcriptOf(
  format: Format,
  conversation: ConversationRecord,
  messages: MessageRecord[],
): string {
  return format === 'md' ? markdownOf(conversation, messages) : jsonOf(conversation, messages)
}

function jsonOf(conversation: ConversationRecord, messages: MessageRecord[]): string {
  const { id, ref, title, status, agent, contactName, channelName, createdAt } = conversation
  const about = { id, ref, title, status, agent: agent?.name ?? null, contactName, channelName, createdAt }
  // The cache adds the names of types.
  const withoutTypes = (key: string, value: unknown) => (key === '__typename' ? undefined : value)
  return `${JSON.stringify({ conversation: about, messages }, withoutTypes, 2)}\n`
}

function markdownOf(conversation: ConversationRecord, messages: MessageRecord[]): string {
  const agent = conversation.agent?.name ?? 'Agent'
  const { ref, contactName, channelName } = conversation
  const about = [ref, agent, contactName, channelName].filter(Boolean).join(' · ')
  const parts = messages.map((message) => {
    const author = message.authorName ?? AUTHORS[message.role] ?? agent
    return `## ${author}, ${message.createdAt}\n\n${bodyOf(message)}`
  })
  return `${[`# ${nameOf(conversation)}`, about, ...parts].join('\n\n')}\n`
}

const AUTHORS: Partial<Record<MessageRecord['role'], string>> = {
  SYSTEM: 'Muster',
  TOOL: 'Tool',
  USER: 'Someone',
}

function bodyOf({ kind, content, attachments }: MessageRecord): string {
  const { text, subject, tool, input, output, isError, approvalId, event, code } = contentOf(content)
  const files = attachments.map(
    ({ filename, mimeType, sizeBytes }) => `- ${filename} (${mimeType}, ${sizeBytes} bytes)`,
  )
  const said = () => {
    switch (kind) {
      case 'THINKING':
        return text.replaceAll(/^/gm, '> ')
      case 'TOOL_CALL':
        return `Called ${tool ?? 'a tool'}:\n\n${fenced(input)}`
      case 'TOOL_RESULT':
        return `${isError ? 'Failed' : 'Result'}:\n\n${fenced(output)}`
      case 'APPROVAL':
        return `Asked for a decision${approvalId ? ` (approval ${approvalId})` : ''}.`
      case 'EVENT':
        return `*${text || event}*`
      case 'ERROR':
        return `**${code ?? 'Error'}**: ${text}`
      default:
        return [subject && subject !== text ? `**${subject}**` : '', text].filter(Boolean).join('\n\n')
    }
  }
  return [said(), files.join('\n')].filter(Boolean).join('\n\n')
}

/** A code block whose fence is longer than any in the text. */
function fenced(value: Json | undefined): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value ?? null, null, 2)
  const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map(({ length }) => length))
  const fence = '`'.repeat(longest + 1)
  return `${fence}\n${text}\n${fence}`
}

/** A file name that every system accepts. */
export function fileName(
  { ref, id, title }: Pick<ConversationRecord, 'ref' | 'id' | 'title'>,
  format: Format,
): string {
  const words = (title ?? '')
    .replaceAll(/[^\p{L}\p{N}]+/gu, '-')
    .replaceAll(/^-|-$/g, '')
    .slice(0, 60)
  return `${[ref ?? id, words].filter(Boolean).join('-')}.${format}`
}
