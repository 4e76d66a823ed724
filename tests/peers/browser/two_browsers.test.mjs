import assert from 'node:assert/strict'
import { test } from 'node:test'
import { asks, begins, row } from './acts.mjs'
import { api, browse, until, world } from './stage.mjs'

const inbox = `/o/${world.org}/approvals`

test('what one person decides, the other sees at once, with who did it and how', async (t) => {
  const asked = await asks('do execute Raise the flag {"command": "raise"}')
  const ada = await browse(t, { as: 'ADMIN', at: `${inbox}?peek=${asked.approval}` })
  const otto = await browse(t, { as: 'OPERATOR', at: inbox })
  await row(otto, 'Raise the flag').waitFor()
  // Otto works in the list: nothing may vanish while he does.
  await row(otto, 'Raise the flag').hover()
  await ada.getByRole('button', { name: 'Approve' }).click()
  await row(otto, 'Raise the flag').getByText('Approved by Ada Admin').waitFor()
  assert.equal(await otto.getByRole('dialog').count(), 0, 'no dialog stands in the way')
})

test('two people decide at the same time: one decision counts, and the other person is told whose', async (t) => {
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
  await vera.waitForTimeout(1_500)
  await vera.getByRole('link', { name: 'Conversations' }).first().click()
  await row(vera, 'Reading room').waitFor()
  await until(async () => (await vera.getByRole('row', { name: /Reading room.*unread/ }).count()) === 0, 'it to be read')
})

test('everybody sees who has taken over, and only that person can write', async (t) => {
  const at = `/o/${world.org}/conversations/${world.conversation}`
  const ada = await browse(t, { as: 'ADMIN', at })
  const otto = await browse(t, { as: 'OPERATOR', at })
  await otto.getByRole('textbox', { name: 'Message' }).waitFor()
  await ada.getByRole('button', { name: 'What can be done with it' }).click()
  await ada.getByRole('menuitem', { name: /Take over/ }).click()
  await otto.getByText('Ada Admin answers', { exact: false }).first().waitFor()
  await until(async () => (await otto.getByRole('textbox', { name: 'Message' }).count()) === 0, 'the composer to close')
  await ada.getByText(/You answer; .* waits/).waitFor()
  await ada.getByRole('button', { name: 'Hand back' }).click()
  await otto.getByRole('textbox', { name: 'Message' }).waitFor()
})
