// Event endpoints: made with a secret that is shown once, looked at, switched off and deleted.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { begins, dialog } from './acts.mjs'
import { apiAs, browse, isAccessible, until, world } from './stage.mjs'

const events = `/o/${world.org}/settings?tab=events`
const button = (within, name) => within.getByRole('button', { name, exact: true })

const endpoints = async () => {
  const query = 'query($org: Id!) { eventEndpoints(orgId: $org) { id name types isActive } }'
  return (await apiAs('OWNER', query)).eventEndpoints
}

test('an endpoint is made, and its secret is shown once', async (t) => {
  const page = await browse(t, { as: 'OWNER', at: events })
  await button(page, 'New event endpoint').click()
  await button(dialog(page), 'Create the endpoint').click()
  await dialog(page).getByText('Choose at least one.').waitFor()
  await dialog(page).getByLabel('Name', { exact: true }).fill('Desk bridge')
  await dialog(page).getByLabel('Address', { exact: true }).fill('http://127.0.0.1:9/')
  await dialog(page).getByLabel('A person or an agent has written').check()
  await button(dialog(page), 'Create the endpoint').click()
  await dialog(page).getByText(/not public/).waitFor()
  await isAccessible(page)
  // A name is resolved only when an event is sent: this one is not called then.
  await dialog(page).getByLabel('Address', { exact: true }).fill('http://localhost:9/')
  await button(dialog(page), 'Create the endpoint').click()
  const shown = page.getByRole('dialog', { name: 'The secret of Desk bridge' })
  await shown.getByText(/^whsec_/).first().waitFor()
  await shown.getByLabel('I have stored it').check()
  await button(shown, 'Done').click()
  await shown.waitFor({ state: 'detached' })
  assert.ok(!(await page.content()).includes('whsec_'), 'the secret is not kept')
  const made = (await endpoints()).find(({ name }) => name === 'Desk bridge')
  assert.deepEqual(made.types, ['conversation.message_added'])
})

test('what became of an event is shown, and it is sent again', async (t) => {
  await begins('Where is my parcel?')
  const page = await browse(t, { as: 'OWNER', at: events })
  await button(page, 'Actions for Desk bridge').click()
  await page.getByRole('menuitem', { name: 'Events of the last 30 days' }).click()
  const line = dialog(page).getByRole('listitem').last()
  await line.getByText('conversation.message_added').waitFor()
  await line.getByText('Being sent', { exact: true }).waitFor()
  await line.getByText(/not public/).waitFor()
  await isAccessible(page)
  const query = 'query($org: Id!) { eventDeliveries(orgId: $org, status: [PENDING]) { data { attempts error } } }'
  await line.getByRole('button', { name: /^Send event \d+ again$/ }).click()
  await page.getByText('Sending again').first().waitFor()
  // The next attempt fails as well, since the address is still not public.
  const isTried = ({ attempts, error }) => attempts > 0 && error
  await until(async () => (await apiAs('OWNER', query)).eventDeliveries.data.some(isTried), 'another failure')
  // It was neither accepted nor given up, so there is nothing to replay.
  await button(dialog(page), 'Replay').click()
  await page.getByText('No events to send again').first().waitFor()
})

test('an endpoint is switched off, on and deleted', async (t) => {
  const page = await browse(t, { as: 'ADMIN', at: events })
  const more = button(page, 'Actions for Desk bridge')
  const isActive = async () => (await endpoints()).find(({ name }) => name === 'Desk bridge').isActive
  await more.click()
  await page.getByRole('menuitem', { name: 'Switch off' }).click()
  await page.getByText('Off', { exact: true }).waitFor()
  assert.equal(await isActive(), false)
  await more.click()
  await page.getByRole('menuitem', { name: 'Switch on' }).click()
  await until(isActive, 'it is on')
  await more.click()
  await page.getByRole('menuitem', { name: 'Delete…' }).click()
  await button(dialog(page), 'Delete').click()
  await more.waitFor({ state: 'detached' })
  assert.ok((await endpoints()).every(({ name }) => name !== 'Desk bridge'))
})

test('a VIEWER learns why there are no endpoints to see', async (t) => {
  const page = await browse(t, { as: 'VIEWER', at: events })
  await page.getByText('Only people with the permission organization.edit see them.').waitFor()
  await button(page, 'New event endpoint').click({ force: true })
  await page.getByRole('dialog', { name: 'You may not do this' }).waitFor()
})
