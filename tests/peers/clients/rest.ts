// Over /v1, with openapi-fetch and the types of openapi-typescript: gives an agent a task, allows what it asks for, and
// prints how it ended.
import createClient from 'openapi-fetch'
import type { components, paths } from './openapi.js'

const { MUSTER_URL, MUSTER_TOKEN, ORG, AGENT, TASK = '' } = process.env
const org_id = Number(ORG)
const muster = createClient<paths>({
  baseUrl: MUSTER_URL ?? '',
  headers: { authorization: `Bearer ${MUSTER_TOKEN}` },
})

type Answer<T> = { data?: T; error?: components['schemas']['Problem'] }
function good<T>({ data, error }: Answer<T>): T {
  if (error || data === undefined) throw new Error(error?.detail)
  return data
}

const conversation = good(
  await muster.POST('/v1/org/{org_id}/conversation', {
    params: { path: { org_id } },
    body: { agent_id: Number(AGENT), title: 'A task' },
  }),
)
const message = good(
  await muster.POST('/v1/org/{org_id}/conversation/{conversation_id}/message', {
    params: { path: { org_id, conversation_id: conversation.id } },
    body: { text: TASK },
  }),
)

for (;;) {
  const path = { org_id, id: Number(message.turn_id) }
  const turn = good(await muster.GET('/v1/org/{org_id}/turn/{id}', { params: { path, query: { wait: 1 } } }))
  if (turn.ended_at) {
    console.log(turn.state)
    break
  }
  const query = { page: 1, limit: 50, only_pending: true }
  const pending = good(await muster.GET('/v1/org/{org_id}/approval', { params: { path: { org_id }, query } }))
  for (const approval of pending.data) {
    if (approval.conversation_id !== conversation.id) continue
    const answered = await muster.PATCH('/v1/org/{org_id}/approval/{id}/answer', {
      params: { path: { org_id, id: approval.id } },
      body: { options: ['approve'] },
    })
    good(answered)
    console.log(`approved: ${approval.title}`)
  }
}
