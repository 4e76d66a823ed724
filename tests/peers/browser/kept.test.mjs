// What a person has chosen or typed is not lost: saved views, drafts, unsent messages, forms with unsaved changes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { asks, begins, call, escapes, hasEntered, hops, intercepts, row, thread } from './acts.mjs'
import { api, browse, isAccessible, signsOut, until, world } from './stage.mjs'

const org = `/o/${world.org}`
const views = (page) => page.getByRole('button', { name: /^Saved views/ })
const item = (page, name) => page.getByRole('menuitem', { name })

test('a view is saved, chosen in another browser, renamed, deleted, and taken back', async (t) => {
  const page = await browse(t, { as: 'OWNER', at: `${org}/approvals?sort=EXPIRES&severity=HIGH` })
  await views(page).click()
  await item(page, 'Save this view…').click()
  const dialog = page.getByRole('dialog', { name: 'Save this view' })
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.getByText('This can’t be empty.').waitFor()
  await dialog.getByLabel('Name').fill('Risky')
  await dialog.getByLabel('Name').press('Enter')
  await page.getByRole('button', { name: 'Saved views: Risky', exact: true }).waitFor()

  const other = await browse(t, { as: 'OWNER', at: `${org}/approvals` })
  await views(other).click()
  await item(other, 'Risky').click()
  await other.waitForURL(/severity=HIGH&sort=EXPIRES|sort=EXPIRES&severity=HIGH/)
  await views(other).click()
  await item(other, 'Rename “Risky”…').click()
  await other.getByRole('dialog').getByLabel('Name').fill('Riskiest')
  await other.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
  await other.getByRole('button', { name: 'Saved views: Riskiest', exact: true }).click()
  await item(other, 'Delete “Riskiest”').click()
  await other.getByRole('button', { name: 'Undo' }).click()
  await other.getByRole('button', { name: 'Saved views: Riskiest', exact: true }).waitFor()

  await hops(page, `${org}/conversations`)
  await views(page).click()
  assert.equal(await item(page, /Riskiest/).count(), 0, 'another list has its own')
})

test('a view that is saved in one tab outlasts the choice of a theme in another', async (t) => {
  const page = await browse(t, { as: 'OWNER', at: `${org}/agents` })
  await page.getByRole('button', { name: /^You: / }).waitFor()
  const other = await browse(t, { as: 'OWNER', at: `${org}/approvals?severity=LOW` })
  await views(other).click()
  await item(other, 'Save this view…').click()
  await other.getByRole('dialog').getByLabel('Name').fill('Calm')
  await other.getByRole('dialog').getByLabel('Name').press('Enter')
  await other.getByRole('button', { name: 'Saved views: Calm', exact: true }).waitFor()

  await page.getByRole('button', { name: /^You: / }).click()
  await item(page, 'Dark').click()
  const stored = async () => (await call(other, '{ viewer { preferences } }')).data.viewer.preferences
  await until(async () => (await stored()).theme === 'dark', 'the theme')
  await other.reload()
  await other.getByRole('button', { name: 'Saved views: Calm', exact: true }).waitFor()
})

test('a form with unsaved changes asks before it goes, and saves on request', async (t) => {
  const page = await browse(t, { as: 'OWNER', at: `${org}/settings` })
  const count = page.getByLabel('Backups to keep of each agent')
  const asked = page.getByRole('alertdialog', { name: 'Leave without saving?' })
  const stored = async () => (await api('query($org: Id!) { organization(orgId: $org) { backupRetention } }')).organization.backupRetention
  const before = await stored()
  await count.fill('41')
  await page.getByRole('link', { name: 'Members', exact: true }).click()
  await asked.waitFor()
  await isAccessible(page, 'asked whether to leave')
  await escapes(page, asked)
  assert.equal(await count.inputValue(), '41', 'Esc stays')
  await page.getByRole('link', { name: 'Safety' }).click()
  await asked.getByRole('button', { name: 'Leave without saving' }).click()
  await page.waitForURL(/tab=safety/)
  assert.equal(await stored(), before)
  await page.goto(`${world.base}${org}/settings`)
  await count.fill('43')
  await page.getByRole('link', { name: 'Members', exact: true }).click()
  await asked.getByRole('button', { name: 'Save and leave' }).click()
  await page.waitForURL(/members/)
  await until(async () => (await stored()) === 43, 'what was saved on leaving')
})

test('a dialog asks before what was typed in it goes, unless it is given up or sent', async (t) => {
  const page = await browse(t, { as: 'OWNER', at: `${org}/skills` })
  const dialog = page.getByRole('dialog', { name: 'New skill' })
  const asked = page.getByRole('alertdialog', { name: 'Leave without saving?' })
  const name = dialog.getByLabel('Name', { exact: true })
  const opens = async () => {
    await page.getByRole('button', { name: 'New skill' }).first().click()
    await name.fill('tide-tables')
  }
  /** Whether the browser would ask before it closes the tab. */
  const holdsTab = () =>
    page.evaluate(() => {
      const event = new Event('beforeunload', { cancelable: true })
      window.dispatchEvent(event)
      return event.defaultPrevented
    })
  await opens()
  await until(holdsTab, 'the browser to hear of it')
  const ways = {
    'a click outside': () => page.mouse.click(5, 5),
    Esc: () => page.keyboard.press('Escape'),
    Back: () => page.evaluate(() => history.back()),
  }
  for (const [way, leaves] of Object.entries(ways)) {
    await hasEntered(name)
    await leaves()
    await asked.getByRole('button', { name: 'Stay' }).click()
    await asked.waitFor({ state: 'detached' })
    await page.waitForURL(/open=new/)
    assert.equal(await name.inputValue(), 'tide-tables', `${way} loses nothing`)
  }
  await dialog.getByRole('button', { name: 'Close' }).click()
  await asked.getByRole('button', { name: 'Leave without saving' }).click()
  await dialog.waitFor({ state: 'detached' })

  await opens()
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await dialog.waitFor({ state: 'detached' })
  assert.equal(await asked.count(), 0, 'Cancel gives up')

  await opens()
  await dialog.getByLabel('Text').fill('High water at noon.')
  await dialog.getByRole('button', { name: 'Create the skill' }).click()
  await page.getByRole('complementary', { name: 'tide-tables' }).waitFor()
  assert.equal(await asked.count(), 0, 'what is sent is not lost')
  assert.equal(await holdsTab(), false)
})

test('a switch that is refused says why beside it', async (t) => {
  const page = await browse(t, { as: 'OWNER', at: `${org}/settings?tab=safety` })
  const refused = page.getByRole('switch', { name: 'Require a second factor' })
  await refused.click()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('alert').filter({ hasText: 'Set up your own second factor first' }).waitFor()
  assert.match(await refused.evaluate(descriptionOf), /Set up your own second factor first/)
  await page.getByRole('button', { name: 'Discard' }).click()
  assert.equal(await refused.isChecked(), false)
})

/** What a screen reader says of a control after its name. */
const descriptionOf = (control) =>
  (control.getAttribute('aria-describedby') ?? '')
    .split(' ')
    .map((id) => document.getElementById(id)?.textContent)
    .join(' ')

test('what is typed outlasts another page and a reload, and is gone when it is sent, and after signing out', async (t) => {
  const at = `${org}/conversations/${await begins('Remember the beans.')}`
  const page = await browse(t, { as: 'OPERATOR', at })
  const box = page.getByLabel('Message', { exact: true })
  await box.fill('Half a sentence')
  await page.getByRole('link', { name: 'Conversations' }).first().click()
  await page.getByRole('grid', { name: 'Conversations' }).waitFor()
  await page.goBack()
  assert.equal(await box.inputValue(), 'Half a sentence')
  await page.reload()
  assert.equal(await box.inputValue(), 'Half a sentence')
  const other = await browse(t, { as: 'ADMIN', at })
  assert.equal(await other.getByLabel('Message', { exact: true }).inputValue(), '', 'no one else’s')
  await box.press('Enter')
  await page.getByText('Half a sentence').first().waitFor()
  const kept = () => page.evaluate(() => Object.keys(localStorage).filter((key) => key.startsWith('muster.draft.')))
  await until(async () => (await kept()).length === 0, 'the end of the draft')
  await box.fill('Another one')
  assert.equal((await kept()).length, 1)
  await signsOut(page)
  assert.deepEqual(await kept(), [])
})

test('signing out shows no note that the session has ended, though its socket ends first', async (t) => {
  const page = await browse(t, { as: 'OPERATOR' })
  const asked = []
  page.on('request', (request) => asked.push(request.url()))
  const socket = page.waitForEvent('websocket')
  await page.goto(`${world.base}${org}/agents`)
  await row(page, 'harbour').waitFor()
  const closed = (await socket).waitForEvent('close')
  await intercepts(page, 'SignOut', async (route) => {
    const response = await route.fetch()
    await closed
    await route.fulfill({ response })
  })
  await signsOut(page)
  assert.ok(!asked.some((address) => address.includes('sign-in-again')), 'nothing asks to sign in again')
})

test('a message that was not accepted is there after a reload, and sent once', async (t) => {
  const id = await begins('Anybody there?')
  const page = await browse(t, { as: 'OPERATOR', at: `${org}/conversations/${id}`, fails: ['/graphql'] })
  const box = page.getByLabel('Message', { exact: true })
  await box.waitFor()
  await intercepts(page, 'PostMessage', (route) => route.abort())
  await box.fill('Lost and found')
  await box.press('Enter')
  await page.getByText(/^Not sent\./).waitFor()
  await page.unroute('**/graphql')
  await page.reload()
  await page.getByText(/^Not sent\./).waitFor()
  await page.getByRole('button', { name: 'Send again' }).click()
  await page.getByText(/^Not sent\./).waitFor({ state: 'detached' })
  const mine = async () => (await thread(id)).filter(({ content }) => content.text === 'Lost and found')
  await until(async () => (await mine()).length > 0, 'the message')
  assert.equal((await mine()).length, 1)
})

test('words for a decision outlast the page, and go with the decision', async (t) => {
  const { approval } = await asks('do execute Sweep the quay {"command": "sweep"}')
  const page = await browse(t, { as: 'OPERATOR', at: `${org}/approvals/${approval}` })
  await page.getByRole('button', { name: 'Add a comment' }).click()
  const words = page.getByLabel('Comment for the agent')
  await words.fill('Not today')
  await page.reload()
  assert.equal(await words.inputValue(), 'Not today')
  await page.getByRole('button', { name: 'Deny' }).click()
  await page.getByText(/Denied|denied/).first().waitFor()
  await until(
    () => page.evaluate(() => !Object.keys(localStorage).some((key) => key.includes('.approval.'))),
    'the end of the words',
  )
})

test('a cell that changes fades once, unless less motion is wanted', async (t) => {
  const { createServer } = await api('mutation($org: Id!, $name: String!) { createServer(orgId: $org, input: { name: $name }) { id } }', {
    name: 'fading',
  })
  const calm = await browse(t, { as: 'OWNER', at: `${org}/servers` })
  const page = await browse(t, { as: 'OWNER', at: `${org}/servers`, reducedMotion: 'no-preference' })
  for (const each of [calm, page]) {
    await row(each, 'fading').waitFor()
    await each.evaluate(() => {
      window.faded = []
      const animate = Element.prototype.animate
      Element.prototype.animate = function (...given) {
        window.faded.push(this.textContent)
        return animate.apply(this, given)
      }
    })
  }
  await api('mutation($org: Id!, $id: Id!) { updateServer(orgId: $org, id: $id, input: { region: "harbour-9" }) { id } }', { id: createServer.id })
  for (const each of [calm, page]) await row(each, 'fading').getByText('harbour-9').waitFor()
  assert.deepEqual(await page.evaluate(() => window.faded), ['fadingharbour-9Waiting to join'])
  assert.deepEqual(await calm.evaluate(() => window.faded), [])
})
