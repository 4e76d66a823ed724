import assert from 'node:assert/strict'
import { test } from 'node:test'
import { asks, begins, call, escapes, rests, row, says, thread } from './acts.mjs'
import { api, browse, isAccessible, shows, until, world } from './stage.mjs'

const inbox = `/o/${world.org}/approvals`

test('two people decide at the same time: one decision counts, and the other person sees whose', async (t) => {
  const asked = await asks('do execute Ring the bell {"command": "ring"}')
  const at = `${inbox}?peek=${asked.approval}`
  const ada = await browse(t, { as: 'ADMIN', at })
  const otto = await browse(t, { as: 'OPERATOR', at })
  await ada.getByRole('button', { name: 'Approve' }).click()
  await otto.getByRole('button', { name: 'Deny' }).click()
  await row(otto, 'Ring the bell').getByText(/came too late/).waitFor()
  await row(otto, 'Ring the bell').getByText(/Approved by Ada Admin/).waitFor()
  await row(ada, 'Ring the bell').getByText('Approved by you').waitFor()
  assert.equal(await otto.getByRole('alert').count(), 0, 'nothing is shown as an error')
})

test('a message that one writes stands in the other’s browser, and reading it counts', async (t) => {
  const conversation = await begins('hello')
  const rename = 'mutation($org: Id!, $id: Id!) { updateConversation(orgId: $org, id: $id, input: { title: "Reading room" }) { id } }'
  await api(rename, { id: conversation })
  const at = `/o/${world.org}/conversations/${conversation}`
  const ada = await browse(t, { as: 'ADMIN', at })
  const otto = await browse(t, { as: 'OPERATOR', at })
  await otto.getByRole('textbox', { name: 'Message' }).waitFor()
  await ada.getByRole('textbox', { name: 'Message' }).fill('Two browsers, one harbour')
  await ada.keyboard.press('Enter')
  await otto.getByRole('article').getByText('Two browsers, one harbour', { exact: true }).first().waitFor()
  const vera = await browse(t, { as: 'VIEWER', at: `/o/${world.org}/conversations` })
  await vera.getByRole('row', { name: /Reading room.*unread/ }).click()
  await vera.getByRole('article').getByText('Two browsers, one harbour', { exact: true }).first().waitFor()
  // What the agent says after she has left is unread.
  await rests(conversation)
  const unread = async () =>
    (await call(vera, 'query($o: Id!, $id: Id!) { conversation(orgId: $o, id: $id) { unread } }', { id: conversation })).data.conversation.unread
  await until(async () => (await unread()) === 0, 'what she sees to be read')
  await vera.getByRole('link', { name: 'Conversations' }).first().click()
  await row(vera, 'Reading room').waitFor()
  await until(async () => (await vera.getByRole('row', { name: /Reading room.*unread/ }).count()) === 0, 'it to be read')
})

test('all users see who has taken over, and only that person can write', async (t) => {
  const at = `/o/${world.org}/conversations/${world.conversation}`
  const ada = await browse(t, { as: 'ADMIN', at })
  const otto = await browse(t, { as: 'OPERATOR', at })
  await otto.getByRole('textbox', { name: 'Message' }).waitFor()
  await ada.getByRole('button', { name: 'Take over', exact: true }).click()
  await otto.getByText('Ada Admin answers', { exact: false }).first().waitFor()
  await until(async () => (await otto.getByRole('textbox', { name: 'Message' }).count()) === 0, 'the composer to close')
  await ada.getByText(/You answer; .* waits/).waitFor()
  await ada.getByRole('button', { name: 'Hand back' }).click()
  await otto.getByRole('textbox', { name: 'Message' }).waitFor()
})

const STOP = 'mutation($o: Id!) { stopOrganization(orgId: $o, reason: "mine") { id } }'
const RELEASE = 'mutation($o: Id!) { releaseOrganization(orgId: $o) { id } }'

test('one person stops the whole organization; all see why at once, nothing starts, and who may lets go', async (t) => {
  const conversation = await begins('hello')
  const answers = async () => (await thread(conversation)).filter(({ role }) => role === 'ASSISTANT').length
  await until(answers, 'the first answer')
  const olive = await browse(t, { as: 'OWNER', at: `/o/${world.org}` })
  const otto = await browse(t, { as: 'OPERATOR', at: `/o/${world.org}/agents` })
  const vera = await browse(t, { as: 'VIEWER', at: `/o/${world.org}` })
  const why = (page) => page.getByRole('dialog', { name: 'You may not do this' })
  const stop = vera.getByRole('button', { name: 'Stop all agents' })
  await stop.waitFor()
  assert.equal(await stop.getAttribute('aria-disabled'), 'true')
  await stop.press('Enter')
  await why(vera).getByText('organization.stop').first().waitFor()
  await escapes(vera, why(vera))
  assert.deepEqual((await call(vera, STOP)).codes, ['PERMISSION_DENIED'])

  await olive.getByRole('button', { name: 'Stop all agents' }).click()
  const dialog = olive.getByRole('dialog', { name: 'Stop all agents?' })
  await dialog.getByRole('button', { name: 'Stop all agents' }).click()
  await dialog.getByRole('alert').waitFor()
  await dialog.getByLabel('Reason').fill('Fire in the engine room')
  await dialog.getByRole('button', { name: 'Stop all agents' }).click()
  const banner = (page) => page.getByRole('region', { name: 'The organization is stopped' })
  for (const page of [olive, otto, vera]) await banner(page).getByText(/Olive Owner stopped .*Fire in the engine room/).waitFor()
  assert.equal(await olive.getByRole('button', { name: 'Stop all agents' }).count(), 0)
  await isAccessible(olive, 'while the organization is stopped')
  await shows(olive, 'stopped-light')

  // The person who pulls it may not release it: that takes an ADMIN.
  for (const page of [otto, vera]) {
    await banner(page).getByRole('button', { name: 'Release' }).press('Enter')
    await why(page).getByText('organization.release').first().waitFor()
    await escapes(page, why(page))
    assert.deepEqual((await call(page, RELEASE)).codes, ['PERMISSION_DENIED'])
  }
  await says(conversation, 'still there?')
  const { turns } = await api(
    'query($org: Id!, $id: Id!) { turns(orgId: $org, conversationId: $id, page: 1, limit: 20) { data { state } } }',
    { id: conversation },
  )
  assert.equal(turns.data.filter(({ state }) => state === 'QUEUED').length, 1, 'it waits')
  assert.equal(await answers(), 1)

  await banner(olive).getByRole('button', { name: 'Release' }).click()
  const release = olive.getByRole('alertdialog', { name: /^Release/ })
  await release.getByText(/All agents resume at once.*Fire in the engine room/).waitFor()
  await release.getByRole('button', { name: 'Release' }).click()
  for (const page of [olive, otto, vera]) await banner(page).waitFor({ state: 'detached' })
  await until(async () => (await answers()) === 2, 'the answer to what has waited')
  await olive.getByRole('button', { name: 'Stop all agents' }).waitFor()
})
