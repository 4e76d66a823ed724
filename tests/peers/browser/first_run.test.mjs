// The first minutes: the demo, and a new organization from nothing to the first answer of an agent.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { hops, record, rests, row, signed } from './acts.mjs'
import { api, apiAs, browse, isAccessible, keeps, reloads, shows, signsOut, stage, until, world } from './stage.mjs'

/** An organization with nothing in it, whose OWNER is the one of the world; and a token for it. */
async function newOrganization(name) {
  const { email } = world.people.OWNER
  const { id } = await stage(`muster org create --name ${name} --owner-email ${email} --plan ENTERPRISE`)
  const { token } = await stage(`muster token create --org ${id} --name t --all`)
  return { org: id, token }
}

/** Calls the service with another organization's token. */
const call = ({ org, token }, query) => api(query, { org }, world.base, token)

test('a newcomer gets from an empty overview to the first answer: a server, its line and machine, an agent, a question', async (t) => {
  const fresh = await newOrganization('Newcomer')
  const page = await browse(t, { as: 'OWNER', at: `/o/${fresh.org}` })
  await page.getByRole('link', { name: 'Get started' }).last().click()
  await page.waitForURL(/\/start$/)
  const now = page.locator('[aria-current="step"]')
  await now.getByText('Connect a server').waitFor()
  await isAccessible(page, 'at the first step')
  await shows(page, 'start-1')
  await page.getByRole('button', { name: 'Show the line to run' }).click()
  await page.getByText('This can’t be empty.').waitFor()
  await page.getByLabel('Name of the server').fill('desk')
  await page.getByRole('button', { name: 'Show the line to run' }).click()
  const line = await page.getByLabel('the line to run', { exact: true }).textContent()
  const { servers } = await call(fresh, 'query($org: Id!) { servers(orgId: $org, page: 1, limit: 5) { data { id name } } }')
  assert.deepEqual(servers.data.map(({ name }) => name), ['desk'])
  assert.match(line, new RegExp(`^muster host join --url ${world.base} .*muster-host-${servers.data[0].id}$`))
  const token = await page.getByLabel('the token', { exact: true }).textContent()
  assert.match(token, /^mst_prov_/)
  await page.getByText('Waiting for desk to join…').waitFor()
  await page.getByText('The machine does not know').click()
  await page.getByLabel('the line that builds the program', { exact: true }).waitFor()
  await isAccessible(page, 'with the line shown')
  await page.reload()
  await page.getByText('desk waits for its machine.').waitFor()
  assert.ok(!(await page.content()).includes('mst_prov_'), 'the line is not kept')
  await page.getByRole('button', { name: 'Show a new line' }).click()
  const again = await page.getByLabel('the token', { exact: true }).textContent()
  assert.notEqual(again, token)

  const loaded = reloads(page)
  await page.getByText('Waiting for desk to join…').waitFor()
  await stage(`types echo '${again}' | ${line}`)
  await page.getByText('desk is connected.').waitFor()
  await page.getByLabel('Name of the agent').fill('Marlow')
  await page.getByRole('button', { name: 'Create and start it' }).click()
  await page.getByText('Marlow is running.').waitFor()
  await page.getByLabel('Write to Marlow').fill('Is anybody there?')
  await page.getByRole('button', { name: 'Send', exact: true }).click()
  await page.getByRole('list', { name: 'Conversation' }).getByText(/^You said: Is anybody there/).waitFor()
  await page.getByText('It has answered.').waitFor()
  await page.getByRole('heading', { name: 'All done' }).waitFor()
  const allow = await page.getByLabel('the line that allows OpenCode', { exact: true }).textContent()
  assert.equal(allow, `muster host run --dir ~/muster-host-${servers.data[0].id} --allow opencode`)
  assert.equal(loaded(), 0, 'each step is seen as it is made')
  const { agentFeed } = await call(fresh, 'query($org: Id!) { agentFeed(orgId: $org) { data { name status server { name } } } }')
  assert.deepEqual(agentFeed.data, [{ name: 'Marlow', status: 'RUNNING', server: { name: 'desk' } }])
})

test('the steps follow what is there: a stopped agent is started, asked, and answers; then it is over', async (t) => {
  const { agentFeed } = await api('query($org: Id!) { agentFeed(orgId: $org) { data { id status } } }')
  for (const { id, status } of agentFeed.data) {
    if (status !== 'STOPPED') await api('mutation($org: Id!, $id: Id!) { stopAgent(orgId: $org, id: $id) { id } }', { id })
  }
  const { conversationFeed } = await api('query($org: Id!) { conversationFeed(orgId: $org) { data { id } } }')
  const answered = conversationFeed.data.length > 0
  const page = await browse(t, { as: 'OWNER', at: `/o/${world.org}/start` })
  await page.getByText('harbour is connected.').waitFor()
  const now = page.locator('[aria-current="step"]')
  await now.getByText('Start an agent').waitFor()
  await isAccessible(page, 'at the second step')
  await page.getByRole('button', { name: 'Start it' }).click()
  await page.getByText(/ is running\.$/).waitFor()
  assert.ok(answered, 'the world has a conversation')
  await page.getByText('It has answered.').waitFor()
  await page.getByRole('list', { name: 'Conversation' }).getByText('How are the beans today?').first().waitFor()
  await page.getByRole('heading', { name: 'All done' }).waitFor()
  await isAccessible(page, 'at the end')
  const next = page.getByRole('region', { name: 'Next steps' })
  await next.getByText('Connect a channel').first().waitFor()
  await next.getByText(/^\d of 5 done$/).waitFor()
  await shows(page, 'start-done')
  const link = page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Get started' })
  await page.getByRole('button', { name: 'Put away' }).click()
  await link.waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Show in the navigation' }).click()
  await link.waitFor()
  await page.getByRole('link', { name: 'Open the agent' }).click()
  await page.waitForURL(/\/agents\/\d+/)
})

test('a person’s own first question stays, else the team’s first; each speaker has their own name', async (t) => {
  const ask = 'mutation($org: Id!, $agent: Id!) { startConversation(orgId: $org, input: { agentId: $agent, text: "How is the tide?" }) { id } }'
  const { startConversation } = await apiAs('ADMIN', ask, { agent: world.agent })
  await rests(startConversation.id)

  // Later, an outsider writes, and is answered.
  const secret = `whsec_${randomBytes(32).toString('base64')}`
  const { createChannel: shop } = await api(
    `mutation($org: Id!, $agent: Id!, $secret: SecretString!) {
      createChannel(orgId: $org, input: {
        name: "Shop", agentId: $agent, transport: WEBHOOK, direction: INBOUND, webhook: { inboundSecret: $secret }
      }) { id inboundPath }
    }`,
    { agent: world.agent, secret },
  )
  const [body, at] = [JSON.stringify({ text: 'Where is it?', origin_id: 'carl' }), String(Math.floor(Date.now() / 1000))]
  const headers = { 'content-type': 'application/json', 'webhook-id': 'm1', 'webhook-timestamp': at, 'webhook-signature': signed(secret, 'm1', at, body) }
  const { ok } = await fetch(world.base + shop.inboundPath, { method: 'POST', headers, body })
  assert.ok(ok)
  const feed = 'query($org: Id!, $id: Id!) { conversationFeed(orgId: $org, channelId: $id) { data { lastMessage { role } } } }'
  await until(
    async () => (await api(feed, { id: shop.id })).conversationFeed.data[0]?.lastMessage?.role === 'ASSISTANT',
    'the answer to who is outside',
  )

  // What is asked later, there or elsewhere, is not shown.
  const say = 'mutation($org: Id!, $id: Id!) { postMessage(orgId: $org, conversationId: $id, input: { text: "And the moon?" }) { id } }'
  await apiAs('ADMIN', say, { id: startConversation.id })
  await rests(startConversation.id)
  await rests((await apiAs('ADMIN', ask.replace('tide', 'wind'), { agent: world.agent })).startConversation.id)

  const agent = await record('agent', world.agent, 'name')
  const page = await browse(t, { as: 'ADMIN', at: `/o/${world.org}/start` })
  const said = page.getByRole('list', { name: 'Conversation' }).getByRole('listitem')
  await said.filter({ hasText: /^You:\s*How is the tide\?/ }).waitFor()
  await said.filter({ hasText: new RegExp(`^${agent.name}:\\s*You said: How is the tide`) }).waitFor()
  assert.equal(await page.getByText(/Where is it\?|moon|wind/).count(), 0)

  const others = await browse(t, { as: 'OWNER', at: `/o/${world.org}/start` })
  await others.getByRole('list', { name: 'Conversation' }).getByText('How are the beans today?').first().waitFor()
  assert.equal(await others.getByText(/tide|Where is it\?|moon|wind/).count(), 0)
})

test('people who may not set anything up are not shown how, and those who may not make a server see why', async (t) => {
  const fresh = await newOrganization('Watched')
  for (const role of ['VIEWER', 'OPERATOR'])
    await stage(`muster member add --org ${fresh.org} --email ${world.people[role].email} --role ${role}`)
  const viewer = await browse(t, { as: 'VIEWER', at: `/o/${fresh.org}` })
  await viewer.getByRole('heading', { name: 'No agents yet' }).waitFor()
  assert.equal(await viewer.getByRole('link', { name: 'Get started' }).count(), 0)
  await hops(viewer, `/o/${fresh.org}/start`)
  await viewer.getByRole('heading', { name: 'Others set this up' }).waitFor()
  await isAccessible(viewer, 'where others set up')
  const page = await browse(t, { as: 'OPERATOR', width: 375, at: `/o/${fresh.org}/start` })
  const show = page.getByRole('button', { name: 'Show the line to run' })
  await show.waitFor()
  assert.equal(await show.getAttribute('aria-disabled'), 'true')
  await show.press('Enter')
  await page.getByRole('dialog', { name: 'You may not do this' }).getByText('server.create').first().waitFor()
  await isAccessible(page, 'on a phone, with the reason shown')
  assert.equal((await call(fresh, 'query($org: Id!) { servers(orgId: $org, page: 1, limit: 5) { total } }')).servers.total, 0)
})

test('the demo: signed in by its link, a newcomer asks about an order, decides about refunds, and leaves', async (t) => {
  const begun = Date.now()
  const { machine } = await stage('types muster demo --json --listen 127.0.0.1:0')
  const said = async () => (await stage(`said ${machine}`)).said.match(/^.+(?=\n)/)?.[0]
  const { address, link } = JSON.parse(await until(said, 'the demo', 60))
  const page = await browse(t, { base: address })
  await page.goto(link)
  await until(() => new URL(page.url()).hash === '', 'the code to leave the address')
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()

  await page.getByRole('link', { name: 'Agents', exact: true }).click()
  await page.getByRole('row', { name: 'Marlow', exact: true }).click()
  await page.getByRole('button', { name: 'New conversation' }).click()
  const dialog = page.getByRole('dialog', { name: 'Talk to Marlow' })
  await dialog.getByLabel('Message').fill('Where is order 1004?')
  await dialog.getByRole('button', { name: 'Send' }).click()
  const marlow = page.getByRole('article', { name: /^Marlow/ })
  await marlow.getByText(/^Order 1004 .*is on its way/).waitFor()
  const seconds = Math.round((Date.now() - begun) / 1000)

  // What it asked before the page was open. It goes on from there as well.
  await page.getByRole('link', { name: /^Approvals/ }).first().click()
  const refund = row(page, 'Use Shop.refund_order')
  await refund.first().click()
  await page.getByRole('button', { name: 'Hold to approve' }).focus()
  await page.keyboard.down('Enter')
  await refund.first().getByText('Approved by you').waitFor()
  await page.keyboard.up('Enter')
  await page.getByRole('link', { name: 'Conversations' }).first().click()
  await row(page, 'Refund for order 1007').first().click()
  await marlow.getByText(/^The refund is approved: 54\.00 EUR for order 1007/).waitFor()

  // A question that is suggested is a click away.
  await page.getByRole('link', { name: 'Get started' }).click()
  await page.getByRole('button', { name: 'Which orders do you know?' }).click()
  await page.getByRole('list', { name: 'Conversation' }).getByText('Which one is it about?').waitFor()

  await signsOut(page)
  const again = await browse(t, { base: address })
  await again.goto(link)
  await again.getByRole('button', { name: 'Sign in', exact: true }).click()
  await again.getByRole('alert').waitFor()
  // When it ends, there is no question.
  await again.close()
  await page.close()

  await stage(`interrupt ${machine}`)
  await until(async () => (await stage(`processes ${machine}`)).count === 0, 'the end of all that the demo has started')
  const figures = { 'seconds from the first line until an agent has looked an order up': seconds }
  keeps('demo.json', `${JSON.stringify(figures)}\n`)
  t.diagnostic(JSON.stringify(figures))
})
