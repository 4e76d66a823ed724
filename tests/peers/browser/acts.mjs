// What several tests of the panel do: have the agent ask, and find what it asked.
import { api, until, world } from './stage.mjs'

/** A row of a list, by a part of its name. */
export const row = (page, name) => page.getByRole('row', { name: new RegExp(name.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')) })

/** A new conversation with the agent, in which this is said. */
export async function begins(text) {
  const { startConversation } = await api(
    'mutation($org: Id!, $agent: Id!, $text: String) { startConversation(orgId: $org, input: { agentId: $agent, text: $text }) { id } }',
    { agent: world.agent, text },
  )
  return startConversation.id
}

/** Says something in a conversation. */
export async function says(conversation, text) {
  const { postMessage } = await api(
    'mutation($org: Id!, $id: Id!, $text: String!) { postMessage(orgId: $org, conversationId: $id, input: { text: $text }) { id seq } }',
    { id: conversation, text },
  )
  return postMessage
}

/** Until the agent has nothing to do in a conversation. */
export async function rests(conversation) {
  await until(async () => {
    const { conversation: now } = await api(
      'query($org: Id!, $id: Id!) { conversation(orgId: $org, id: $id) { lastSeq openTurns { id } } }',
      { id: conversation },
    )
    return now.lastSeq > 0 && now.openTurns.length === 0
  }, 'the agent to rest')
}

/** Notes what the page reads out from now on, and answers a function that tells it: each time that a live region changed. */
export async function listens(page) {
  await page.evaluate(() => {
    window.heard = []
    const regionOf = ({ target }) =>
      (target instanceof Element ? target : target.parentElement)?.closest('[role=status], [aria-live=polite]')
    new MutationObserver((changes) => {
      const regions = new Set(changes.map(regionOf).filter(Boolean))
      window.heard.push(...[...regions].map(({ textContent }) => textContent.trim()).filter(Boolean))
    }).observe(document.body, { subtree: true, childList: true, characterData: true })
  })
  return () => page.evaluate(() => window.heard)
}

/** Has the agent ask something, in a conversation of its own. */
export async function asks(word) {
  const conversation = await begins(word)
  const approval = await until(async () => {
    const { approvalFeed } = await api(
      'query($org: Id!, $id: Id!) { approvalFeed(orgId: $org, conversationId: $id, status: [PENDING]) { data { id messageSeq } } }',
      { id: conversation },
    )
    // Its place in the conversation is known a moment later than itself.
    return approvalFeed.data[0]
  }, 'the approval')
  return { conversation, approval: approval.id }
}

/** The messages of a conversation, as the service tells them. */
export async function thread(conversation) {
  const { messages } = await api(
    'query($org: Id!, $id: Id!) { messages(orgId: $org, conversationId: $id, limit: 200) { data { seq role kind content } } }',
    { id: conversation },
  )
  return messages.data
}

/** Calls the service from a page, with its cookie. Answers the data and the codes of what was refused. */
export const call = (page, query, variables = {}) =>
  page.evaluate(
    async ([query, variables]) => {
      const answer = await fetch('/graphql', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ query, variables }),
      })
      const { data, errors = [] } = await answer.json()
      return { data, codes: errors.map(({ extensions }) => extensions.code) }
    },
    [query, { o: world.org, ...variables }],
  )
