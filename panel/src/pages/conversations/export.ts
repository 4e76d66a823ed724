// Exports a conversation: reads all its messages, and downloads them as a file.
import type { Client } from '@urql/core'
import { wordsOf } from '../../api/errors'
import { graphql } from '../../api/graphql'
import { readFresh } from '../../api/requests'
import { MessageFields, type MessageRecord } from '../../app/thread/fields'
import { downloadText } from '../../ui/download'
import { say, sayProblem } from '../../ui/toast-store'
import type { ConversationRecord } from './record'
import { type Format, fileName, transcriptOf } from './transcript'

const Messages = graphql(
  `
    query ExportedMessages($orgId: Id!, $conversationId: Id!, $afterSeq: Int) {
      messages(orgId: $orgId, conversationId: $conversationId, afterSeq: $afterSeq, limit: 200) {
        data { ...MessageFields }
        hasAfter
      }
    }
  `,
  [MessageFields],
)

const TYPES: Record<Format, string> = { md: 'text/markdown', json: 'application/json' }

export async function exportConversation(
  client: Client,
  orgId: number,
  conversation: ConversationRecord,
  format: Format,
): Promise<void> {
  const messages: MessageRecord[] = []
  for (let hasAfter = true; hasAfter; ) {
    const variables = { orgId, conversationId: conversation.id, afterSeq: messages.at(-1)?.seq ?? 0 }
    const { data, error } = await readFresh(client, Messages, variables)
    if (!data?.messages) {
      sayProblem(wordsOf(error))
      return
    }
    messages.push(...data.messages.data.toSorted((a, b) => a.seq - b.seq))
    hasAfter = data.messages.hasAfter && data.messages.data.length > 0
  }
  downloadText(transcriptOf(format, conversation, messages), TYPES[format], fileName(conversation, format))
  say(`Exported ${messages.length.toLocaleString()} messages: see the downloads`)
}
