// No test in this file uses the pointer.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  asks, begins, escapes, hasEntered, hasFocus, holdsBack, outcome, pressesAtOnce, record, rests, row, stepTo, tabs, tabTo, thread,
} from './acts.mjs'
import { BEFORE, PAGES } from './pages.mjs'
import { api, browse, isAccessible, until, world } from './stage.mjs'
import { walksThrough } from './walk.mjs'

const org = `/o/${world.org}`

/** Pages of every day. `every_page_by_tab` goes through all. */
const DAILY = ['overview', 'approvals', 'approval', 'conversation', 'agents', 'agent', 'agent-settings', 'sign-in']

test('Tab goes through a page and leaves it; the focus is seen everywhere', (t) =>
  walksThrough(t, [...PAGES, ...BEFORE].filter(({ name }) => DAILY.includes(name))))

test('the first Tab leads past the navigation', async (t) => {
  const page = await browse(t, { as: 'VIEWER', at: `${org}/agents` })
  await row(page, 'harbour').waitFor()
  await page.keyboard.press('Tab')
  const skip = page.getByRole('link', { name: 'Skip to the page' })
  assert.ok(await hasFocus(skip))
  assert.ok((await skip.boundingBox()).y >= 0, 'it is seen')
  await page.keyboard.press('Enter')
  await until(() => hasFocus(page.locator('#main')), 'the focus to be on the page')
  await page.keyboard.press('Tab')
  assert.ok(await page.locator('#main').evaluate((main) => main.contains(document.activeElement)))
})

test('anything is found and opened', async (t) => {
  const page = await browse(t, { as: 'VIEWER', at: org })
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  // What is typed does not wait until the field is there.
  await page.keyboard.press('Control+k')
  await page.keyboard.type('harbour')
  await page.getByRole('option', { name: /harbour/ }).first().waitFor()
  const option = page.getByRole('option', { selected: true })
  await until(async () => /harbour/.test(await option.innerText()), 'the first one to be chosen')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'harbour' }).waitFor()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
})

test('an approval is found, read and decided', async (t) => {
  const asked = await asks('do execute Raise the sail {"command": "raise"}')
  const page = await browse(t, { as: 'OPERATOR', at: org })
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await pressesAtOnce(page, 'g', 'i')
  const line = row(page, 'Raise the sail')
  await stepTo(page, line, 'j')
  await page.keyboard.press('Enter')
  const peek = page.getByRole('complementary', { name: 'Raise the sail' })
  await peek.getByText('raise', { exact: true }).first().waitFor()
  assert.ok(await hasFocus(line), 'the list keeps the keys')
  await tabTo(page, peek.getByRole('button', { name: 'Approve' }))
  await page.keyboard.press('Enter')
  await until(async () => (await outcome(asked.approval)) === 'APPROVED', 'the approval')
})

test('a conversation is opened from the list and written in', async (t) => {
  const conversation = await begins('hello')
  await api('mutation($org: Id!, $id: Id!) { updateConversation(orgId: $org, id: $id, input: { title: "By keys alone" }) { id } }', { id: conversation })
  const page = await browse(t, { as: 'OPERATOR', at: `${org}/conversations` })
  await tabTo(page, page.getByRole('row').and(page.locator('[tabindex="0"]')))
  await stepTo(page, row(page, 'By keys alone'), 'ArrowDown')
  await page.keyboard.press('Enter')
  await page.waitForURL(new RegExp(`/conversations/${conversation}`))
  await tabTo(page, page.getByRole('textbox', { name: 'Message' }))
  await page.keyboard.type('written without a mouse')
  await page.keyboard.press('Enter')
  await until(async () => (await thread(conversation)).some(({ content }) => content.text === 'written without a mouse'), 'the message')
  assert.ok(await hasFocus(page.getByRole('textbox', { name: 'Message' })), 'one can go on writing')
})

const talk = (id) => record('conversation', id, 'takenOverBy openTurns { state }')

test('a person takes over and hands back', async (t) => {
  const conversation = await begins('hello')
  await rests(conversation)
  const holder = async () => (await talk(conversation)).takenOverBy
  const page = await browse(t, { as: 'OPERATOR', at: `${org}/conversations/${conversation}` })
  await page.getByRole('textbox', { name: 'Message' }).waitFor()
  await page.keyboard.press('t')
  const back = page.getByRole('button', { name: 'Hand back' })
  await back.waitFor()
  assert.ok(await holder())
  await tabTo(page, back)
  await until(async () => !(await back.getAttribute('aria-busy')), 'the taking over to be over')
  await page.keyboard.press('Enter')
  await until(async () => (await holder()) === null, 'the handing back')
})

test('what the agent is in the middle of is not cancelled by one key', async (t) => {
  const conversation = await begins('hang')
  const page = await browse(t, { as: 'OPERATOR', at: `${org}/conversations/${conversation}` })
  await page.getByText('Working').waitFor()
  await page.keyboard.press('t')
  const asked = page.getByRole('alertdialog', { name: 'Take over now?' })
  await asked.getByText(/cancels the turn/).waitFor()
  await escapes(page, asked)
  const { takenOverBy, openTurns } = await talk(conversation)
  assert.equal(takenOverBy, null)
  assert.deepEqual(openTurns.map(({ state }) => state), ['RUNNING'])
  await page.keyboard.press('t')
  await tabTo(page, asked.getByRole('button', { name: 'Take over' }))
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Hand back' }).waitFor()
  await asked.waitFor({ state: 'detached' })
  await until(async () => (await talk(conversation)).openTurns.length === 0, 'the turn to end')
})

test('keys that are one character can be switched off, and everything goes on without them', async (t) => {
  const page = await browse(t, { as: 'ADMIN', at: '/account?tab=appearance' })
  const single = page.getByRole('switch', { name: 'Single-key shortcuts' })
  const sheet = page.getByRole('dialog', { name: 'Keyboard shortcuts' })
  const entry = (name) => sheet.getByRole('img', { name, exact: true })
  const toggles = async () => {
    await tabTo(page, single)
    const kept = page.waitForResponse((answer) => answer.request().postData()?.includes('SetPreferences') ?? false)
    await page.keyboard.press('Space')
    await kept
  }
  await single.waitFor()
  await page.keyboard.press('?')
  await entry('G Y').waitFor()
  await escapes(page, sheet)
  assert.ok(await single.isChecked(), 'they are on at first')
  await toggles()
  await until(async () => !(await single.isChecked()), 'the switch to be off')

  // Reloaded: it is the account that says so.
  const asked = await asks('do execute Mend the net {"command": "mend"}')
  await page.goto(`${world.base}${org}/approvals?kind=ACTION&sort=CREATED`)
  await row(page, 'Mend the net').waitFor()
  const before = page.url()
  for (const key of ['?', 'j', 'a', 'g', 'y']) await page.keyboard.press(key)
  // The keys are answered in their order, so those before have done what they do.
  await page.keyboard.press('ArrowDown')
  const line = row(page, 'Mend the net')
  await until(() => hasFocus(line), 'the arrow to move')
  assert.equal(page.url(), before)
  assert.equal(await page.getByRole('dialog').count(), 0)
  assert.equal(await line.getByRole('button', { name: 'Cancel' }).count(), 0, 'nothing is about to be sent')
  await page.keyboard.press('Enter')
  await page.getByRole('complementary', { name: 'Mend the net' }).getByRole('button', { name: 'Approve' }).waitFor()
  await page.getByRole('button', { name: /^You:/ }).press('Enter')
  const menu = page.getByRole('menu')
  await menu.getByRole('menuitem', { name: 'Keyboard shortcuts' }).waitFor()
  assert.equal(await menu.locator('kbd').count(), 0, 'a menu names no key that is off')
  await escapes(page, menu)
  assert.equal(await outcome(asked.approval), null)

  await page.keyboard.press('Control+k')
  await page.keyboard.type('show keyboard shortcuts')
  await page.getByRole('option', { name: /Show keyboard shortcuts/, selected: true }).waitFor()
  await page.keyboard.press('Enter')
  await entry('Ctrl K').waitFor()
  await entry('↓').waitFor()
  assert.deepEqual([await entry('J').count(), await entry('G Y').count()], [0, 0], 'what is off is not shown')
  await isAccessible(page, 'in the sheet of keys')
  await tabTo(page, sheet.getByRole('link', { name: /Appearance/ }))
  await page.keyboard.press('Enter')
  await sheet.waitFor({ state: 'detached' })
  await toggles()
  await until(() => single.isChecked(), 'the switch to be on')
  await page.keyboard.press('?')
  await entry('G Y').waitFor()
})

test('an agent is made, with its server chosen from a list', async (t) => {
  const page = await browse(t, { as: 'OPERATOR', at: `${org}/agents` })
  await row(page, 'harbour').waitFor()
  await page.keyboard.press('c')
  const dialog = page.getByRole('dialog', { name: 'New agent' })
  const name = dialog.getByLabel('Name', { exact: true })
  await name.waitFor()
  await until(() => hasFocus(name), 'the focus to be in the first field')
  await page.keyboard.type('Keys')
  await tabTo(page, dialog.getByRole('combobox', { name: 'Server' }))
  const option = page.getByRole('option', { name: 'harbour' })
  await page.keyboard.press('ArrowDown')
  await option.waitFor()
  const isMarked = async () => (await option.getAttribute('data-highlighted')) !== null
  await until(async () => (await isMarked()) || (await page.keyboard.press('ArrowDown')), 'the server to be marked')
  await page.keyboard.press('Enter')
  await option.waitFor({ state: 'detached' })
  await tabTo(page, dialog.getByRole('button', { name: 'Create the agent' }))
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Keys' }).waitFor()
})

test('Tab stays in a dialog, and Esc leaves it', async (t) => {
  const page = await browse(t, { as: 'OWNER', at: `${org}/skills?open=new` })
  const dialog = page.getByRole('dialog', { name: 'New skill' })
  await dialog.waitFor()
  await hasEntered(dialog)
  for (let n = 0; n < 15; n += 1) {
    await tabs(page, n < 8 ? 'Tab' : 'Shift+Tab')
    assert.ok(await dialog.evaluate((element) => element.contains(document.activeElement)), 'the page behind cannot be reached')
  }
  await escapes(page, dialog)
})

test('the keys of a page work as soon as it is drawn', async (t) => {
  const page = await browse(t, { as: 'OPERATOR' })
  await page.addInitScript(() => {
    new MutationObserver((_, observer) => {
      if (!document.querySelector('textarea[aria-label="Message"]')) return
      observer.disconnect()
      document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'c', bubbles: true, cancelable: true }))
    }).observe(document, { subtree: true, childList: true })
  })
  await page.goto(`${world.base}${org}/conversations/${world.conversation}`)
  await until(() => hasFocus(page.getByRole('textbox', { name: 'Message' })), 'the key to be answered')
})

test('two keys of a sequence count when they were pressed, however late a busy page answers them', async (t) => {
  const page = await browse(t, { as: 'VIEWER', at: org })
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await page.evaluate(async () => {
    const [first, second] = ['g', 'a'].map((key) => new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }))
    document.body.dispatchEvent(first)
    await new Promise((resolve) => setTimeout(resolve, 1_300))
    document.body.dispatchEvent(second)
  })
  await page.waitForURL(/\/agents$/)
})

test('the row that J has led to is the one that Enter opens, also before the next frame', async (t) => {
  const { approval } = await asks('do execute Stow the boom {"command": "stow"}')
  await asks('do execute Stow the gaff {"command": "stow"}')
  const page = await browse(t, { as: 'VIEWER', at: `${org}/approvals?kind=ACTION&sort=CREATED` })
  await stepTo(page, row(page, 'Stow the gaff'), 'j')
  await page.evaluate(async () => {
    const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }))
    press('j')
    // What a key changes at once is drawn before anything else happens.
    await null
    press('Enter')
  })
  await page.waitForURL(new RegExp(`peek=${approval}`))
})

test('a field that is chosen from keeps the focus while what it opens is fetched', async (t) => {
  const page = await browse(t, { as: 'VIEWER' })
  const release = await holdsBack(page, '**/overlays.js')
  await page.goto(`${world.base}${org}/approvals`)
  const standIn = page.getByPlaceholder('Any agent')
  await standIn.focus()
  assert.notEqual(await standIn.getAttribute('readonly'), null, 'the field stands in for the one that is fetched')
  release()
  const field = page.getByRole('combobox', { name: 'Agent', exact: true })
  await field.waitFor()
  assert.ok(await hasFocus(field))
  await page.keyboard.type('harb')
  assert.equal(await field.inputValue(), 'harb')
})
