// Personal data: an organization is exported; its deletion and the erasure of a contact are scheduled, and cancelled.
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { dialog, record, row } from './acts.mjs'
import { api, apiAs, browse, isAccessible, world } from './stage.mjs'

const data = `/o/${world.org}/settings?tab=data`
const button = (within, name) => within.getByRole('button', { name, exact: true })
const line = (page, name) => page.getByRole('listitem').filter({ has: page.getByText(name) })

const organization = async () => {
  const query = 'query($org: Id!) { organization(orgId: $org) { name erasures { subject } } }'
  return (await apiAs('OWNER', query)).organization
}
const scheduled = async () => (await organization()).erasures.map(({ subject }) => subject)

/** Someone outside writes through a new channel. Answers the conversation. */
async function isWrittenTo(channel, from) {
  const secret = 'sesame-of-the-hook'
  const { createChannel } = await api(
    `mutation($org: Id!, $agent: Id!, $channel: String!, $secret: SecretString!) {
      createChannel(orgId: $org, input: {
        name: $channel, agentId: $agent, transport: WEBHOOK, direction: INBOUND, webhook: { inboundSecret: $secret, signatureHeader: "X-Signature" }
      }) { inboundPath }
    }`,
    { agent: world.agent, channel, secret },
  )
  const body = JSON.stringify({ id: 'm-1', text: 'Where is my parcel?', ...from })
  const signature = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
  const headers = { 'content-type': 'application/json', 'x-signature': signature }
  const answer = await fetch(world.base + createChannel.inboundPath, { method: 'POST', headers, body })
  assert.ok(answer.ok, `${answer.status}`)
  return (await answer.json()).conversation_id
}

test('a contact is found by its channel, gets a note, and stays while a conversation names it', async (t) => {
  const conversation = await isWrittenTo('Counter', { origin_id: 'customer-8', origin_name: 'Dora Customer' })
  const page = await browse(t, { as: 'OWNER', at: `/o/${world.org}/contacts?q=DORA` })
  await row(page, 'Dora Customer').click()
  const peek = page.getByRole('complementary', { name: 'Dora Customer' })
  await peek.getByText('customer-8').waitFor()
  await peek.getByRole('textbox', { name: /^Note for members/ }).fill('Prefers mail')
  await button(peek, 'Save').click()
  await row(page, 'Dora Customer').getByText('Prefers mail').waitFor()
  await isAccessible(page)
  await peek.getByRole('button', { name: 'Delete the contact', exact: true, disabled: true }).waitFor()
  await peek.getByRole('listitem').getByRole('link').click()
  await page.waitForURL(new RegExp(`/conversations/${conversation}$`))
  const { channelId } = await record('conversation', conversation, 'channelId')
  await page.goto(`${world.base}/o/${world.org}/contacts?channel=${channelId}`)
  await row(page, 'Dora Customer').waitFor()
  assert.equal(await page.getByRole('row').and(page.locator('[data-index]')).count(), 1)
})

test('a contact is erased from its conversation', async (t) => {
  const conversation = await isWrittenTo('Shop', { origin_id: 'customer-7', origin_name: 'Cora Customer' })
  const page = await browse(t, { as: 'OWNER', at: `/o/${world.org}/conversations/${conversation}?panel=details` })
  await button(page, 'Erase the contact').click()
  await isAccessible(page)
  await button(dialog(page), 'Schedule the erasure').click()
  await page.getByText('The erasure is scheduled: see Settings, Data').first().waitFor()
  assert.deepEqual(await scheduled(), ['CONTACT'])
  await page.goto(world.base + data)
  await button(line(page, /^Contact \d+$/), 'Cancel').click()
  await page.getByText('Nothing is to be erased.').waitFor()
  assert.deepEqual(await scheduled(), [])
})

test('the name of the organization confirms its deletion', async (t) => {
  const { name } = await organization()
  const page = await browse(t, { as: 'OWNER', at: data })
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Export everything' }).click(),
  ])
  assert.equal(download.suggestedFilename(), `organization-${world.org}.tar`)
  await button(page, 'Delete the organization').click()
  await dialog(page).getByRole('textbox').fill(name)
  await button(dialog(page), 'Schedule the deletion').click()
  const deletion = line(page, 'The organization')
  await button(deletion, 'Cancel').waitFor()
  assert.deepEqual(await scheduled(), ['ORGANIZATION'])
  await isAccessible(page)
  await button(deletion, 'Cancel').click()
  await deletion.waitFor({ state: 'detached' })
  assert.deepEqual(await scheduled(), [])
})

test('an ADMIN learns that only an OWNER may erase', async (t) => {
  const page = await browse(t, { as: 'ADMIN', at: data })
  await button(page, 'Export everything').click({ force: true })
  await page.getByRole('dialog', { name: 'You may not do this' }).waitFor()
})
