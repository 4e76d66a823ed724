// Two replicas on one database: the page of one shows what happens on the other, also after it was restarted.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { asks, begins, isBack, isLost, LOST, row, says, thread } from './acts.mjs'
import { browse, reloads, stage, until, world } from './stage.mjs'

const org = `/o/${world.org}`
const agents = (page) => page.getByRole('article', { name: /^(?!You)/ })

/** The other replica's address. */
let elsewhere
before(async () => {
  elsewhere = (await stage('replica')).base
})

test('an agent on one replica writes, and the page of the other shows it while it does', async (t) => {
  const conversation = await begins('hello')
  const page = await browse(t, { as: 'OPERATOR', base: elsewhere, at: `${org}/conversations/${conversation}` })
  await agents(page).first().waitFor()
  await says(conversation, 'slowly 12 250\nAll of it')
  await page.locator('[data-streaming]').waitFor()
  await agents(page).getByText(/All of it/).first().waitFor()
  // What is written here reaches the agent there.
  await page.getByRole('textbox', { name: 'Message' }).fill('from the other side')
  await page.keyboard.press('Enter')
  await agents(page).getByText(/from the other side/).first().waitFor()
})

test('what is asked on one replica is decided on the other, and both pages see it', async (t) => {
  const here = await browse(t, { as: 'ADMIN', at: `${org}/approvals` })
  const there = await browse(t, { as: 'OPERATOR', base: elsewhere, at: `${org}/approvals` })
  await there.getByRole('heading', { name: 'Approvals' }).waitFor()
  const asked = await asks('do execute Weigh the anchor {"command": "weigh"}')
  await row(there, 'Weigh the anchor').click()
  await there.getByRole('button', { name: 'Approve' }).click()
  await row(here, 'Weigh the anchor').getByText('Approved by Otto Operator').waitFor()
  await until(async () => (await thread(asked.conversation)).some(({ kind }) => kind === 'TOOL_RESULT'), 'the agent to do it')
})

test('a replica that was killed comes back under its page, with what happened on the other', async (t) => {
  const conversation = await begins('hello')
  const page = await browse(t, { as: 'OPERATOR', base: elsewhere, at: `${org}/conversations/${conversation}`, fails: LOST })
  const inbox = await browse(t, { as: 'OPERATOR', base: elsewhere, at: `${org}/approvals`, fails: LOST })
  await agents(page).first().waitFor()
  await inbox.getByRole('heading', { name: 'Approvals' }).waitFor()
  const loaded = reloads(page)
  const box = page.getByRole('textbox', { name: 'Message' })
  await box.fill('not yet sent')
  await stage('kill replica')
  await isLost(page)
  await says(conversation, 'while you were away')
  await asks('do execute Trim the sails {"command": "trim"}')
  assert.equal((await stage('replica')).base, elsewhere)
  await agents(page).getByText(/while you were away/).first().waitFor()
  await row(inbox, 'Trim the sails').waitFor()
  await isBack(page)
  assert.equal(await box.inputValue(), 'not yet sent')
  // And it receives what comes next.
  await says(conversation, 'and now again')
  await agents(page).getByText(/and now again/).first().waitFor()
  assert.equal(loaded(), 0)
})

test('the other replica goes on while one is away', async (t) => {
  const conversation = await begins('hello')
  const page = await browse(t, { as: 'OPERATOR', base: elsewhere, at: `${org}/conversations/${conversation}` })
  await agents(page).first().waitFor()
  await stage('kill')
  await page.getByRole('textbox', { name: 'Message' }).fill('is anybody there')
  await page.keyboard.press('Enter')
  await page.getByRole('article').getByText('is anybody there', { exact: true }).first().waitFor()
  assert.equal(await page.getByText(/^No connection since/).count(), 0)
  await stage('serve')
  await agents(page).getByText(/is anybody there/).first().waitFor()
})
