// Channels that carry messages: who is let in, what became of an answer, whether a channel is heard, and decisions in chats.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { after, test } from 'node:test'
import { asks, deferred, hops, intercepts, row, signed } from './acts.mjs'
import { flaws } from './looks.mjs'
import { api, browse, isAccessible, isAccessibleInBoth, reloads, shows, showsBoth, stage, until, world } from './stage.mjs'

const channels = `/o/${world.org}/channels`
const secret = `whsec_${randomBytes(32).toString('base64')}`

/** Takes what Muster sends: the texts, whether each was signed rightly, and what it answers. */
const receiver = { got: [], answers: 200, holds: Promise.resolve() }
const server = createServer(async (request, response) => {
  let body = ''
  for await (const piece of request) body += piece
  const { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signature } = request.headers
  receiver.got.push({ text: JSON.parse(body).data.message.text, isSigned: signature === signed(secret, id, at, body) })
  await receiver.holds
  response.writeHead(receiver.answers, { 'content-type': 'application/json' })
  response.end('{}')
}).listen(0, '127.0.0.1')
// Node ends a connection after five idle seconds, perhaps just when the next delivery is sent over it, which then fails once.
server.keepAliveTimeout = 600_000
await once(server, 'listening')
after(() => {
  server.close()
  server.closeAllConnections()
})

const { hook, chat, calendar, drive } = await api(
  `mutation($org: Id!, $agent: Id!, $url: String!, $secret: SecretString!, $bot: SecretString!) {
    hook: createChannel(orgId: $org, input: {
      name: "Orders", agentId: $agent, transport: WEBHOOK,
      webhook: { outboundUrl: $url, outboundSecret: $secret, inboundSecret: $secret }
    }) { id inboundPath }
    chat: createChannel(orgId: $org, input: { name: "Harbour chat", agentId: $agent, transport: TELEGRAM, botToken: $bot }) { id }
    calendar: createChannel(orgId: $org, input: { name: "Tides", agentId: $agent, transport: CALENDAR }) { id }
    drive: createChannel(orgId: $org, input: { name: "Charts", agentId: $agent, transport: DRIVE, drive: { folderId: "f1" } }) { id }
  }`,
  { agent: world.agent, url: `http://127.0.0.1:${server.address().port}/muster`, secret, bot: world.bot },
)
// Once it has an entry, the list refuses all others.
await api('mutation($org: Id!, $id: Id!) { addWhitelistOrigin(orgId: $org, id: $id, input: { originId: "shop" }) { id } }', { id: hook.id })

let sent = 0
const ADA = { id: 'ada', name: 'Ada' }
/** Is on the list from the beginning. */
const SHOP = { id: 'shop', name: 'Shop' }
/** A person writes to the webhook. */
async function writes(text, from = ADA) {
  sent += 1
  const body = JSON.stringify({ text, origin_id: from.id, origin_name: from.name, thread: 'order-7' })
  const [id, at] = [`in_${sent}`, String(Math.floor(Date.now() / 1000))]
  const answer = await fetch(world.base + hook.inboundPath, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signed(secret, id, at, body) },
    body,
  })
  return { status: answer.status, ...(await answer.json()) }
}

test('a channel to filter by is looked for among those that were read when the list opened', async (t) => {
  const page = await browse(t, { as: 'OWNER', at: `/o/${world.org}/conversations` })
  let asked = 0
  page.on('request', (request) => {
    if (request.postData()?.includes('ChannelsFound')) asked += 1
  })
  const field = page.getByRole('combobox', { name: 'Channel', exact: true })
  const offered = (name) => page.getByRole('option', { name })
  await field.click()
  await offered('Orders').waitFor()
  for (const [typed, other] of [['Harbour chat', 'Tides'], ['Tides', 'Harbour chat']]) {
    await field.fill(typed)
    await offered(typed).waitFor()
    await offered(other).waitFor({ state: 'detached' })
  }
  assert.equal(asked, 1)
})

const peek = (page, name) => page.getByRole('complementary', { name })
/** Presses a button without the pointer. */
async function presses(page, button) {
  await button.focus()
  await page.keyboard.press('Enter')
}

/** Where something stands, as soon as it has not moved for half a second: fonts and markdown come a moment later. */
async function place(element) {
  let [before, times] = ['', 0]
  return until(async () => {
    const now = await element.boundingBox()
    times = JSON.stringify(now) === before ? times + 1 : 0
    before = JSON.stringify(now)
    return times >= 10 && now
  }, 'it to stand still')
}

test('who is refused is shown at once, and let in by one press that can be taken back', async (t) => {
  const page = await browse(t, { as: 'OWNER', at: `${channels}?peek=${hook.id}` })
  const orders = peek(page, 'Orders')
  await orders.getByText(world.base + hook.inboundPath).waitFor()
  const guide = orders.getByRole('link', { name: 'Guide to Webhook channels' })
  assert.equal((await fetch(world.base + (await guide.getAttribute('href')))).status, 200)

  assert.equal((await writes('Where is my order?')).reason, 'not_whitelisted')
  await writes('Hello?', { id: 'bob' })
  const refused = orders.getByRole('list', { name: 'Refused senders' })
  const ada = refused.getByRole('listitem').filter({ hasText: 'Ada' })
  await ada.getByText('Not on the list · once').waitFor()
  await writes('Where is it?')
  await ada.getByText('Not on the list · 2 times').waitFor()
  await isAccessibleInBoth(page, 'with a person refused')
  await showsBoth(page, 'channel-refused')
  await page.setViewportSize({ width: 375, height: 720 })
  assert.deepEqual(await flaws(page), [])
  await shows(page, 'channel-refused-phone')
  await page.setViewportSize({ width: 1280, height: 800 })

  const letIn = refused.getByRole('button', { name: 'Let in Ada' })
  await presses(page, letIn)
  await page.getByText('Ada may write').waitFor()
  await orders.getByRole('button', { name: 'Remove ada from the list' }).waitFor()
  assert.equal(await letIn.count(), 0)
  await until(async () => orders.evaluate((element) => element.contains(document.activeElement)), 'the focus to stay')

  await presses(page, page.getByRole('button', { name: 'Undo' }))
  await until(async () => (await orders.getByRole('button', { name: 'Remove ada from the list' }).count()) === 0, 'an empty list')
  assert.equal((await writes('Once more')).reason, 'not_whitelisted')
  await presses(page, letIn)
  await orders.getByRole('button', { name: 'Remove ada from the list' }).waitFor()
})

test('an answer waits, is sent, fails and is sent again, and nothing moves when it is sent', async (t) => {
  let release
  ;[receiver.holds, release] = deferred()
  const { conversation_id: conversation } = await writes('Tell me about the ferry', SHOP)
  const page = await browse(t, { as: 'OWNER', at: `/o/${world.org}/conversations/${conversation}` })
  const log = page.getByRole('log', { name: 'Messages' })
  const answer = log.getByRole('article').filter({ has: page.locator('[data-delivery]') }).first()
  await answer.getByText('Waits to be sent').waitFor()
  const before = await place(answer)
  release()
  await answer.getByText(/^Sent/).waitFor()
  assert.deepEqual(await place(answer), before, 'it stays where it is, as high as it was')
  await until(() => receiver.got.some(({ text }) => text.includes('ferry')), 'the answer at the receiver')
  assert.ok(receiver.got.every(({ isSigned }) => isSigned), 'each is signed')

  receiver.answers = 422
  await writes('Tell me about the lighthouse', SHOP)
  const failed = log.getByRole('article').filter({ hasText: 'The other side refused the message.' })
  await failed.getByText('Not sent').waitFor()
  await failed.getByText('The receiver answered with status 422.').waitFor()
  await isAccessibleInBoth(page, 'with a message that was not sent')
  await showsBoth(page, 'delivery-failed')
  await page.setViewportSize({ width: 375, height: 720 })
  assert.deepEqual(await flaws(page), [])
  await shows(page, 'delivery-failed-phone')
  await page.setViewportSize({ width: 1280, height: 800 })

  receiver.answers = 200
  await presses(page, log.getByRole('button', { name: 'Send again' }).first())
  await until(async () => (await log.getByText('Not sent').count()) === 0, 'the message to be sent')
  await until(() => receiver.got.filter(({ text }) => text.includes('lighthouse')).length > 1, 'the message at the receiver, once more')

  const viewer = await browse(t, { as: 'VIEWER', at: `/o/${world.org}/conversations/${conversation}` })
  receiver.answers = 422
  await writes('Tell me about the buoys', SHOP)
  await presses(viewer, viewer.getByRole('button', { name: 'Send again' }).first())
  await viewer.getByRole('dialog', { name: 'You may not do this' }).waitFor()
  receiver.answers = 200
})

test('what becomes of an answer while its thread is being opened is not missed', async (t) => {
  const page = await browse(t, { as: 'VIEWER', at: '/account' })
  let release
  receiver.answers = 422
  ;[receiver.holds, release] = deferred()
  const { conversation_id: conversation } = await writes('Tell me about the pier', SHOP)
  const answer = async () => {
    const { messages } = await api(
      'query($org: Id!, $id: Id!) { messages(orgId: $org, conversationId: $id) { data { delivery { status } } } }',
      { id: conversation },
    )
    return messages.data.at(-1).delivery?.status
  }
  await until(async () => ['PENDING', 'SENDING'].includes(await answer()), 'an answer that waits')

  // The thread is read while the answer waits, and arrives after the last event about it.
  const [[isRead, reads], [isShown, show], [isConnected, connect], [isSynced, syncs]] = [deferred(), deferred(), deferred(), deferred()]
  await intercepts(page, 'ThreadMessages', async (route) => {
    const response = await route.fetch()
    reads()
    await isShown
    await route.fulfill({ response })
  })
  await page.routeWebSocket('**/graphql', async (socket) => {
    await isConnected
    const service = socket.connectToServer()
    service.onMessage((message) => {
      socket.send(message)
      if (String(message).includes('RESYNC')) syncs()
    })
  })
  await page.goto(`${world.base}/o/${world.org}/conversations/${conversation}`)
  await isRead
  release()
  await until(async () => (await answer()) === 'FAILED', 'the answer to fail')
  connect()
  await isSynced
  show()
  const last = page.locator('[data-delivery]').last()
  await until(async () => (await last.getAttribute('data-delivery')) === 'FAILED', 'the answer to be shown as failed')
  receiver.answers = 200
})

test('a channel says whether it is heard, and what it lacks', async (t) => {
  const page = await browse(t, { as: 'OWNER', at: `${channels}?peek=${chat.id}` })
  const harbour = peek(page, 'Harbour chat')
  await harbour.getByText(/^since /).waitFor()
  await harbour.getByText(/In groups the bot sees only commands/).waitFor()
  await stage('telegram breaks')
  await harbour.getByText('Telegram: Bad Gateway').waitFor()
  await harbour.getByText(/^not since /).waitFor()
  await row(page, 'Harbour chat').getByText('Not receiving').waitFor()
  await isAccessibleInBoth(page, 'with a channel that is not heard')
  await showsBoth(page, 'channel-not-heard')
  await stage('telegram mends')
  await harbour.getByText(/^since /).waitFor()
  await until(async () => (await row(page, 'Harbour chat').getByText('Not receiving').count()) === 0, 'the row')

  await stage('telegram garbles')
  const skipped = harbour.getByRole('list', { name: 'Skipped messages' }).getByRole('listitem')
  await skipped.getByText(/not an update of Telegram/).waitFor()
  assert.equal(await skipped.count(), 1)
  await isAccessibleInBoth(page, 'with a skipped message')
  await showsBoth(page, 'channel-skipped')

  await page.goto(`${world.base}${channels}?peek=${drive.id}`)
  const charts = peek(page, 'Charts')
  await charts.getByText(/^No account is connected\./).waitFor()
  await page.goto(`${world.base}${channels}?open=new`)
  const dialog = page.getByRole('dialog', { name: 'New channel' })
  await dialog.getByRole('link', { name: 'Guide to Telegram channels' }).waitFor()
})

test('an approval is answered in a chat, and the panel shows it at once', async (t) => {
  const page = await browse(t, { as: 'OWNER', at: `/o/${world.org}/settings?tab=safety` })
  await page.getByLabel('Decisions in chats only below this risk').fill('101')
  await page.getByRole('button', { name: 'Save' }).first().click()
  await until(async () => (await api('query($org: Id!) { organization(orgId: $org) { chatRiskLimit } }')).organization.chatRiskLimit === 101, 'the limit')

  await page.goto(`${world.base}${channels}?peek=${chat.id}`)
  await presses(page, peek(page, 'Harbour chat').getByRole('button', { name: 'Link my chat' }))
  const dialog = page.getByRole('dialog', { name: 'Link your chat' })
  const code = await dialog.getByRole('group', { name: 'The code' }).innerText()
  await isAccessible(page, 'with the code of a chat')
  await stage(`telegram says ${code.trim()}`)
  await dialog.getByText('The chat is linked.').waitFor()
  await presses(page, dialog.getByRole('button', { name: 'Done' }))
  await peek(page, 'Harbour chat').getByText('Your chat is linked: Ada').waitFor()

  const asked = await asks('do execute Load the ferry {"command": "load --all"}')
  await hops(page, `/o/${world.org}/conversations/${asked.conversation}`)
  const other = await browse(t, { as: 'ADMIN', at: `/o/${world.org}/approvals/${asked.approval}` })
  await page.getByRole('button', { name: /^Approve/ }).or(page.getByText('Hold to approve')).first().waitFor()
  await other.getByText('load --all').first().waitFor()
  const loads = [reloads(page), reloads(other)]
  await until(async () => (await stage('telegram taps Approve')).tapped, 'the question in the chat')
  await page.getByText('Approved by you in a chat').waitFor()
  await other.getByText('Approved by Olive Owner in a chat').waitFor()
  assert.deepEqual(loads.map((count) => count()), [0, 0])
  await isAccessible(other, 'with an approval that was answered in a chat')
  await shows(other, 'approval-in-a-chat')

  await hops(page, '/account?tab=notifications')
  await page.getByRole('link', { name: 'Harbour chat' }).waitFor()
  await isAccessibleInBoth(page, 'with a linked chat')
  await shows(page, 'account-chats')
  await presses(page, page.getByRole('button', { name: 'Unlink' }))
  await page.getByText('You are asked only here.').waitFor()
})

test('what comes in is told in the conversation that the channel notifies', async (t) => {
  const page = await browse(t, { as: 'OWNER', at: `${channels}?peek=${hook.id}` })
  const orders = peek(page, 'Orders')
  await orders.getByRole('combobox', { name: /^Notify/ }).click()
  await page.getByRole('option', { name: /beans/ }).first().click()
  await presses(page, orders.getByRole('button', { name: 'Save' }))
  const notified = async () => {
    const query = 'query($org: Id!, $id: Id!) { channel(orgId: $org, id: $id) { notifyConversationId } }'
    return (await api(query, { id: hook.id })).channel.notifyConversationId
  }
  await until(async () => (await notified()) === world.conversation, 'the choice to be saved')

  const { conversation_id: conversation } = await writes('Is the harbour open?', SHOP)
  await hops(page, `/o/${world.org}/conversations/${world.conversation}`)
  const log = page.getByRole('log', { name: 'Messages' })
  const notice = log.getByRole('article').filter({ hasText: 'A message came in through Orders' })
  await notice.waitFor()
  await isAccessibleInBoth(page, 'with a notice')
  await presses(page, notice.getByRole('link', { name: 'Open the conversation' }))
  await log.getByText('Is the harbour open?').first().waitFor()
  assert.equal(new URL(page.url()).pathname, `/o/${world.org}/conversations/${conversation}`)

  const archive = 'mutation($org: Id!, $id: Id!) { updateConversation(orgId: $org, id: $id, input: { status: ARCHIVED }) { id } }'
  await api(archive, { id: world.conversation })
  await page.goto(`${world.base}${channels}?peek=${hook.id}`)
  await orders.getByText(/is archived, so it gets no notices/).waitFor()
})

test('a calendar is connected to an account on the vendor’s page, and disconnected', async (t) => {
  const at = `${channels}?peek=${calendar.id}`
  const page = await browse(t, { as: 'OWNER', at, visits: world.provider })
  const tides = peek(page, 'Tides')
  await tides.getByText('Not connected').waitFor()
  await tides.getByText(/after 7 days/).waitFor()
  await isAccessibleInBoth(page, 'with an account to connect')
  await tides.getByRole('button', { name: 'Connect Google account' }).click()
  await page.waitForURL(`${world.provider}/**`)
  await page.locator('input[name=login]').fill('tides')
  await page.locator('input[name=password]').fill('whatever')
  await page.getByRole('button', { name: 'Sign-in', exact: true }).click()
  await page.getByRole('button', { name: 'Continue', exact: true }).click()
  await page.waitForURL(world.base + at)
  await tides.getByText('tides@example.org').waitFor()
  await tides.getByRole('heading', { name: 'Calendars' }).waitFor()
  await isAccessible(page, 'with a connected account')
  await tides.getByRole('button', { name: 'Disconnect' }).click()
  const dialog = page.getByRole('alertdialog', { name: 'Disconnect the account?' })
  await dialog.getByRole('button', { name: 'Disconnect' }).click()
  await tides.getByText('Not connected').waitFor()

  await page.goto(`${world.base}/oauth/channel?error=access_denied&state=${world.org}.${calendar.id}.x`)
  await page.getByText('Access was not allowed, so nothing was connected.').waitFor()
  await isAccessible(page, 'back without an account')
  await page.getByRole('link', { name: 'Back to the channel' }).click()
  await page.waitForURL(world.base + at)
})
