// The service dies (kill -9) and comes back while pages are open: they say so, keep everything, and catch up by themselves.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { asks, begins, isBack, isLost, LOST, outcome, record, row, says } from './acts.mjs'
import { browse, isAccessible, reloads, shows, stage, until, world } from './stage.mjs'

const org = `/o/${world.org}`
/** Ends the service; it is back when the returned function is called, or after the test. */
async function falls(t) {
  await stage('kill')
  let isUp = false
  const rises = async () => {
    if (isUp) return
    isUp = true
    await stage('serve')
  }
  t.after(rises)
  return rises
}
const said = (page, text) => page.getByRole('article').getByText(text, { exact: true }).first()

test('a conversation says that it is not connected, keeps what stands and what is typed, and catches up', async (t) => {
  const conversation = await begins('The first word')
  const page = await browse(t, { as: 'OPERATOR', at: `${org}/conversations/${conversation}`, fails: LOST })
  await said(page, 'The first word').waitFor()
  await page.getByRole('article', { name: /^(?!You)/ }).first().waitFor()
  const loaded = reloads(page)
  const box = page.getByRole('textbox', { name: 'Message' })
  await box.fill('half a senten')

  const rises = await falls(t)
  await isLost(page)
  await said(page, 'The first word').waitFor()
  await box.press('End')
  await box.pressSequentially('ce')
  await isAccessible(page, 'without a connection')
  await shows(page, 'not-connected')
  await rises()
  // Before the page knows that the service is back.
  await says(conversation, 'said meanwhile')

  await said(page, 'said meanwhile').waitFor()
  await isBack(page)
  assert.equal(await box.inputValue(), 'half a sentence')
  await box.press('Enter')
  await said(page, 'half a sentence').waitFor()
  await page.getByRole('article', { name: /^(?!You)/ }).getByText(/half a sentence/).first().waitFor()
  assert.equal(loaded(), 0, 'nothing was loaded again')
})

test('what an agent writes while the service is away is shown when it is back', async (t) => {
  const conversation = await begins('hello')
  const page = await browse(t, { as: 'ADMIN', at: `${org}/conversations/${conversation}`, fails: LOST })
  await page.getByRole('article').first().waitFor()
  const loaded = reloads(page)
  await says(conversation, 'slowly 20 100\nThe end of it')
  await page.locator('[data-streaming]').waitFor()
  const rises = await falls(t)
  await isLost(page)
  await rises()
  await page.getByRole('article', { name: /^(?!You)/ }).getByText(/The end of it/).first().waitFor()
  await until(async () => (await page.locator('[data-streaming]').count()) === 0, 'the text that was being written to go')
  assert.equal(loaded(), 0)
})

test('a message that is sent while the service is away stays, and is sent again once', async (t) => {
  const conversation = await begins('hello')
  const page = await browse(t, { as: 'OPERATOR', at: `${org}/conversations/${conversation}`, fails: LOST })
  await page.getByRole('article').first().waitFor()
  const rises = await falls(t)
  await isLost(page)
  await page.getByRole('textbox', { name: 'Message' }).fill('into the void')
  await page.keyboard.press('Enter')
  await page.getByText(/Not sent/).waitFor()
  await rises()
  await isBack(page)
  await page.getByRole('button', { name: 'Send again' }).click()
  await said(page, 'into the void').waitFor()
  await until(async () => (await page.getByText(/Not sent/).count()) === 0, 'it to be accepted')
})

test('the inbox keeps its rows and what is open, a decision waits for the service, and what happened shows', async (t) => {
  const open = await asks('do execute Caulk the hull {"command": "caulk"}')
  await asks('do execute Tar the planks {"command": "tar"}')
  const page = await browse(t, { as: 'OPERATOR', at: `${org}/approvals?peek=${open.approval}`, fails: LOST })
  const peek = page.getByRole('complementary', { name: 'Caulk the hull' })
  await peek.getByText('caulk', { exact: false }).first().waitFor()
  await row(page, 'Tar the planks').waitFor()
  const loaded = reloads(page)
  const rows = await page.getByRole('row').count()

  const rises = await falls(t)
  await isLost(page)
  assert.equal(await page.getByRole('row').count(), rows, 'every row stays')
  await peek.getByRole('button', { name: 'Approve' }).click()
  await peek.getByText(/was not accepted/).or(row(page, 'Caulk the hull').getByText(/was not accepted/)).first().waitFor()
  await rises()
  await asks('do execute Step the mast {"command": "step"}')
  await row(page, 'Step the mast').waitFor()
  await isBack(page)
  assert.equal(await page.getByRole('row').count(), rows + 1)
  // The decision's own: what could not be read offers the same.
  await row(page, 'Caulk the hull').getByRole('button', { name: 'Try again' }).click()
  await row(page, 'Caulk the hull').getByText('Approved by you').waitFor()
  assert.equal(await outcome(open.approval), 'APPROVED')
  assert.equal(loaded(), 0)
})

test('a form keeps what was typed, and is saved when the service is back', async (t) => {
  const page = await browse(t, { as: 'ADMIN', at: `${org}/agents/${world.agent}?tab=settings`, fails: LOST })
  const name = page.getByRole('textbox', { name: 'Role' })
  await name.fill('Harbour master')
  const loaded = reloads(page)
  const rises = await falls(t)
  await isLost(page)
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('The service did not answer', { exact: false }).first().waitFor()
  assert.equal(await name.inputValue(), 'Harbour master')
  await rises()
  await isBack(page)
  assert.equal(await name.inputValue(), 'Harbour master', 'reading again takes nothing away')
  await page.getByRole('button', { name: 'Save' }).click()
  await until(async () => (await record('agent', world.agent, 'role')).role === 'Harbour master', 'the change')
  assert.equal(loaded(), 0)
})

test('a page that is opened while the service is away comes when it is back', async (t) => {
  const page = await browse(t, { as: 'OWNER', at: org, fails: LOST })
  await page.getByRole('heading').first().waitFor()
  const loaded = reloads(page)
  const rises = await falls(t)
  await isLost(page)
  await page.getByRole('link', { name: 'Agents', exact: true }).first().click()
  await page.getByRole('heading', { name: 'This could not be shown' }).waitFor()
  await isAccessible(page, 'with a page that could not be fetched')
  await rises()
  await page.getByRole('grid', { name: 'Agents' }).waitFor()
  await isBack(page)
  assert.equal(loaded(), 0)
})
