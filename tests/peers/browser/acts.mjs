// What several tests of the panel do: have the agent ask, find what it asked, press keys when they count, and go from page to page.
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { api, until, world } from './stage.mjs'

/** A row of a list, by a part of its name. */
export const row = (page, name) => page.getByRole('row', { name: new RegExp(name.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')) })

/** A new conversation with the agent, in which this is said. */
export async function begins(text, agent = world.agent) {
  const { startConversation } = await api(
    'mutation($org: Id!, $agent: Id!, $text: String) { startConversation(orgId: $org, input: { agentId: $agent, text: $text }) { id } }',
    { agent, text },
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

/** The name and the text of the file that a press downloads. */
export async function downloads(page, press) {
  const [download] = await Promise.all([page.waitForEvent('download'), press()])
  return { name: download.suggestedFilename(), text: await readFile(await download.path(), 'utf8') }
}

/** A promise, and the function that fulfils it. */
export function deferred() {
  let fulfil
  const promise = new Promise((resolve) => {
    fulfil = resolve
  })
  return [promise, fulfil]
}

/** Holds back what a page asks for at these addresses, if it contains a word, until the returned function is called. */
export async function holdsBack(page, addresses, word = '') {
  const [released, release] = deferred()
  await page.route(addresses, async (route) => {
    if ((route.request().postData() ?? '').includes(word)) await released
    await route.continue()
  })
  return release
}

/** Has a test answer the page's requests that contain a word. */
export const intercepts = (page, word, act) =>
  page.route('**/graphql', (route) => (route.request().postData()?.includes(word) ? act(route) : route.continue()))

/** Another word each time, for names that must be unique. */
export const fresh = (word) => `${word}${Math.random().toString(36).slice(2, 8)}`

/** The open dialog, also one that interrupts with a question. */
export const dialog = (page) => page.getByRole('dialog').or(page.getByRole('alertdialog'))

/** Fields of a record, as the service has them. `kind` is the query's name. */
export const record = async (kind, id, fields) =>
  (await api(`query($org: Id!, $id: Id!) { ${kind}(orgId: $org, id: $id) { ${fields} } }`, { id }))[kind]

export const outcome = async (approval) => (await record('approval', approval, 'outcome')).outcome

/** Denies an approval with the token, as another person would. */
export const denies = (id) =>
  api('mutation($org: Id!, $id: Id!) { answerApproval(orgId: $org, id: $id, input: { options: ["deny"] }) { id } }', { id })

/** What to expect of a page whose connection is lost, and how it says so. */
export const LOST = ['/graphql', '/assets/']
export const isLost = (page) => page.getByRole('status').getByText(/^No connection since/).waitFor()
export const isBack = (page) => page.getByText(/^No connection since/).waitFor({ state: 'detached', timeout: 20_000 })

/** Until the agent has nothing to do in a conversation. */
export async function rests(conversation) {
  await until(async () => {
    const now = await record('conversation', conversation, 'lastSeq openTurns { id }')
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
    'query($org: Id!, $id: Id!) { messages(orgId: $org, conversationId: $id, limit: 200) { data { seq role kind status content } } }',
    { id: conversation },
  )
  return messages.data
}

/** The signature of Standard Webhooks. */
export const signed = (secret, id, at, body) =>
  `v1,${createHmac('sha256', Buffer.from(secret.slice('whsec_'.length), 'base64')).update(`${id}.${at}.${body}`).digest('base64')}`

/** The code that an authenticator app shows so many steps of thirty seconds from now (RFC 6238). */
export function codeOf(secret, later = 0) {
  const bits = [...secret].map((letter) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(letter).toString(2).padStart(5, '0')).join('')
  const key = Buffer.from(bits.match(/.{8}/g).map((byte) => Number.parseInt(byte, 2)))
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000) + later))
  const digest = createHmac('sha1', key).update(counter).digest()
  const number = digest.readUInt32BE(digest.at(-1) & 15) & 0x7fffffff
  return String(number % 1_000_000).padStart(6, '0')
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

/** Also within a shadow root. */
export const hasFocus = (locator) => locator.evaluate((element) => element === element.getRootNode().activeElement)

/** Until the layer that something stands in has the focus, a frame after it is there: then it answers keys. */
export const hasEntered = (locator) =>
  until(
    () =>
      locator.evaluate((element) => {
        const layer = element.closest('[role="dialog"], [role="alertdialog"], [role="menu"]')
        return !layer || layer.contains(document.activeElement)
      }),
    'the focus to be in what has opened',
  )

/** Closes by Esc what has opened. */
export async function escapes(page, layer) {
  await layer.waitFor()
  await hasEntered(layer)
  await page.keyboard.press('Escape')
  await layer.waitFor({ state: 'detached' })
}

/** Presses keys as quick people do: the next one does not wait until the page has answered the one before. */
export const pressesAtOnce = (page, ...keys) => Promise.all(keys.map((key) => page.keyboard.press(key)))

/** Presses Tab. At the end of a dialog the focus is on a guard first, and a frame later at the other end. */
export async function tabs(page, key = 'Tab') {
  await page.keyboard.press(key)
  const isOnItsWay = () => page.evaluate(() => document.activeElement?.hasAttribute('data-base-ui-focus-guard') ?? false)
  await until(async () => !(await isOnItsWay()), 'the focus to come in at the other end')
}

/** Presses Tab until the focus is there. */
export async function tabTo(page, locator, key = 'Tab') {
  await locator.waitFor()
  await hasEntered(locator)
  for (let n = 0; n < 150; n += 1) {
    if (await hasFocus(locator)) return
    await tabs(page, key)
  }
  assert.fail(`${locator} is not reached by ${key}`)
}

/** Goes through a list by a key until the row has the focus. A key is not pressed before the one before has moved it. */
export async function stepTo(page, line, key) {
  await line.waitFor()
  for (let n = 0; n < 20; n += 1) {
    if (await hasFocus(line)) return
    const before = await page.evaluateHandle(() => document.activeElement)
    await page.keyboard.press(key)
    await until(() => before.evaluate((element) => element !== document.activeElement), `${key} to move the focus`)
  }
  assert.fail(`${line} is not reached by ${key}`)
}

/** Until everything is loaded. */
export async function settled(page) {
  await page.getByRole('heading').first().waitFor()
  await until(async () => (await page.getByText('Loading…').count()) === 0, 'the end of loading')
}

/** Of each page, the route that `opens` has opened last. */
const shown = new WeakMap()

/** Goes to a page of another route within the panel, as people do, and waits until it is whole. Loading costs several times as much. */
export async function hops(page, at) {
  shown.delete(page)
  await page.evaluate((address) => {
    for (const title of document.querySelectorAll('h1')) title.dataset.left = ''
    history.pushState({}, '', address)
  }, at)
  await page.locator('h1:not([data-left])').first().waitFor()
  await settled(page)
}

/** Opens a page of a table, and waits until it is whole: within the panel, where it can. */
export async function opens(page, { route, at }, base = world.base) {
  const before = shown.get(page)
  if (before && route && before !== route) {
    await hops(page, at)
  } else {
    await page.goto(base + at)
    await settled(page)
  }
  shown.set(page, route)
}

/** Pages in an order in which, as far as possible, none follows another of its own route: `opens` then loads few of them. */
export function apart(pages) {
  const met = {}
  const turns = pages.map((page) => {
    met[page.route] = (met[page.route] ?? 0) + 1
    return { page, turn: met[page.route] }
  })
  return turns.sort((one, other) => one.turn - other.turn).map(({ page }) => page)
}
