// Over GraphQL, with the documents and types of graphql-codegen: gives an agent a task, allows what it asks for, and
// prints how it ended.
import type { TypedDocumentNode } from '@graphql-typed-document-node/core'
import { print } from 'graphql'
import {
  AnswerApprovalDocument,
  GetTurnDocument,
  ListApprovalsDocument,
  PostMessageDocument,
  StartConversationDocument,
} from './operations.js'

const { MUSTER_URL, MUSTER_TOKEN, ORG, AGENT, TASK = '' } = process.env
const orgId = Number(ORG)

async function ask<Data, Variables>(document: TypedDocumentNode<Data, Variables>, variables: Variables): Promise<Data> {
  const response = await fetch(`${MUSTER_URL}/graphql`, {
    method: 'POST',
    headers: { authorization: `Bearer ${MUSTER_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ query: print(document), variables }),
  })
  const answer = (await response.json()) as { data: Data; errors?: { message: string }[] }
  if (answer.errors) throw new Error(answer.errors.map((error) => error.message).join(' '))
  return answer.data
}

/** GraphQL answers null for a root field that failed. */
function found<T>(value: T | null | undefined): T {
  if (value === null || value === undefined) throw new Error('There is no answer.')
  return value
}

const started = await ask(StartConversationDocument, { orgId, input: { agentId: Number(AGENT), title: 'A task' } })
const conversationId = found(started.startConversation).id
const posted = await ask(PostMessageDocument, { orgId, conversationId, input: { text: TASK } })
const id = found(found(posted.postMessage).turnId)

for (;;) {
  const turn = found((await ask(GetTurnDocument, { orgId, id, wait: 1 })).turn)
  if (turn.endedAt) {
    console.log(`${turn.state}`)
    break
  }
  const pending = await ask(ListApprovalsDocument, { orgId, page: 1, limit: 50, onlyPending: true })
  for (const approval of found(pending.approvals).data) {
    if (approval.conversationId !== conversationId) continue
    await ask(AnswerApprovalDocument, { orgId, id: approval.id, input: { options: ['approve'] } })
    console.log(`approved: ${approval.title}`)
  }
}
