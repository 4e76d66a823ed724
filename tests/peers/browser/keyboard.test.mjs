// No test in this file uses the pointer.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { asks, begins, rests, row, thread } from './acts.mjs'
import { BEFORE, PAGES, settled } from './pages.mjs'
import { api, browse, isAccessible, until, world } from './stage.mjs'

const org = `/o/${world.org}`
const outcome = async (id) =>
  (await api('query($org: Id!, $id: Id!) { approval(orgId: $org, id: $id) { outcome } }', { id })).approval.outcome
const hasFocus = (locator) => locator.evaluate((element) => element === document.activeElement)

/** Until the dialog that something stands in has the focus, which it takes a moment after it is there. */
const hasEntered = (locator) =>
  until(
    () =>
      locator.evaluate((element) => {
        const dialog = element.closest('[role="dialog"], [role="alertdialog"]')
        return !dialog || dialog.contains(document.activeElement)
      }),
    'the focus to be in the dialog',
  )

/** Presses Tab until the focus is there. */
async function tabTo(page, locator, key = 'Tab') {
  await locator.waitFor()
  await hasEntered(locator)
  for (let n = 0; n < 150; n += 1) {
    if (await hasFocus(locator)) return
    await page.keyboard.press(key)
  }
  assert.fail(`${locator} is not reached by ${key}`)
}

/** What has the focus: whether it was there before, and whether one sees it. Runs in the page. */
function focused() {
  const element = document.activeElement
  if (!element || element === document.body) return { end: true }
  const walked = (window.walked ??= new Set())
  if (walked.has(element)) return { end: true }
  walked.add(element)
  const ringed = (each) => {
    const { outlineStyle, outlineWidth } = getComputedStyle(each)
    return outlineStyle !== 'none' && Number.parseFloat(outlineWidth) >= 2
  }
  const label = element.labels?.[0]
  const isRinged = [element, element.parentElement, element.parentElement?.parentElement, label, element.nextElementSibling].some((each) => each && ringed(each))
  const box = (label && element.clientWidth <= 1 ? label : element).getBoundingClientRect()
  const [x, y] = [box.left + Math.min(box.width / 2, 100), box.top + Math.min(box.height / 2, 20)]
  const hit = document.elementFromPoint(x, y)
  const isOnTop = Boolean(hit && (element.contains(hit) || hit.contains(element) || label?.contains(hit)))
  const name = (element.getAttribute('aria-label') ?? element.labels?.[0]?.innerText ?? element.innerText ?? element.localName).trim().slice(0, 40)
  return { name: `<${element.localName}> ${name}`, isRinged, isOnTop }
}

/** Tabs through a whole page. */
async function walks(page, name) {
  const stops = []
  for (;;) {
    await page.keyboard.press('Tab')
    const stop = await page.evaluate(focused)
    if (stop.end) break
    stops.push(stop)
    assert.ok(stops.length < 400, `${name} ends`)
  }
  const lost = stops.filter(({ isRinged, isOnTop }) => !isRinged || !isOnTop).map((stop) => JSON.stringify(stop))
  return { stops, lost }
}

test('Tab goes through every page and leaves it; the focus is seen everywhere', async (t) => {
  const found = {}
  for (const [as, pages] of [['OWNER', PAGES], [undefined, BEFORE]]) {
    const page = await browse(t, { as })
    for (const each of pages) {
      // Loaded anew, so that Tab begins at the top.
      await page.goto(world.base + each.at)
      await settled(page)
      const { stops, lost } = await walks(page, each.name)
      assert.ok(stops.length > 0, `${each.name} has something to focus`)
      if (lost.length > 0) found[each.name] = lost
    }
  }
  assert.deepEqual(found, {})
})

test('the first Tab leads past the navigation', async (t) => {
  const page = await browse(t, { as: 'VIEWER', at: `${org}/agents` })
  await row(page, 'harbour').waitFor()
  await page.keyboard.press('Tab')
  const skip = page.getByRole('link', { name: 'Skip to the page' })
  assert.ok(await hasFocus(skip))
  assert.ok((await skip.boundingBox()).y >= 0, 'it is seen')
  await page.keyboard.press('Enter')
  assert.ok(await hasFocus(page.locator('#main')))
  await page.keyboard.press('Tab')
  assert.ok(await page.locator('#main').evaluate((main) => main.contains(document.activeElement)))
})

test('anything is found and opened', async (t) => {
  const page = await browse(t, { as: 'VIEWER', at: org })
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await page.keyboard.press('Control+k')
  await page.getByRole('dialog', { name: 'Find anything' }).waitFor()
  await page.keyboard.type('harbour')
  await page.getByRole('option', { name: /harbour/ }).first().waitFor()
  const option = page.getByRole('option', { selected: true })
  await until(async () => /harbour/.test(await option.innerText()), 'the first one to be chosen')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'harbour' }).waitFor()
  assert.equal(await page.getByRole('dialog').count(), 0)
})

test('an approval is found, read and decided', async (t) => {
  const asked = await asks('do execute Raise the sail {"command": "raise"}')
  const page = await browse(t, { as: 'OPERATOR', at: org })
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await page.keyboard.press('g')
  await page.keyboard.press('i')
  const line = row(page, 'Raise the sail')
  await line.waitFor()
  for (let n = 0; n < 20 && !(await hasFocus(line)); n += 1) {
    await page.keyboard.press('j')
    await page.waitForTimeout(50)
  }
  await page.keyboard.press('Enter')
  const peek = page.getByRole('complementary', { name: 'Raise the sail' })
  await peek.getByText('raise', { exact: true }).first().waitFor()
  assert.ok(await hasFocus(line), 'the list keeps the keys')
  await tabTo(page, peek.getByRole('button', { name: 'Approve' }))
  await page.waitForTimeout(600)
  await page.keyboard.press('Enter')
  await until(async () => (await outcome(asked.approval)) === 'APPROVED', 'the approval')
})

test('what is risky is approved by holding Enter', async (t) => {
  const asked = await asks('do execute Cut the line {"command": "rm -r line"}')
  const page = await browse(t, { as: 'OPERATOR', at: `${org}/approvals/${asked.approval}` })
  await tabTo(page, page.getByRole('button', { name: 'Hold to approve' }))
  await page.keyboard.down('Enter')
  await until(async () => (await outcome(asked.approval)) === 'APPROVED', 'the approval')
  await page.keyboard.up('Enter')
})

test('a conversation is opened from the list and written in', async (t) => {
  const conversation = await begins('hello')
  await api('mutation($org: Id!, $id: Id!) { updateConversation(orgId: $org, id: $id, input: { title: "By keys alone" }) { id } }', { id: conversation })
  const page = await browse(t, { as: 'OPERATOR', at: `${org}/conversations` })
  const line = row(page, 'By keys alone')
  await tabTo(page, page.getByRole('row').and(page.locator('[tabindex="0"]')))
  for (let n = 0; n < 20 && !(await hasFocus(line)); n += 1) {
    await page.keyboard.press('ArrowDown')
    await page.waitForTimeout(50)
  }
  await page.keyboard.press('Enter')
  await page.waitForURL(new RegExp(`/conversations/${conversation}`))
  await tabTo(page, page.getByRole('textbox', { name: 'Message' }))
  await page.keyboard.type('written without a mouse')
  await page.keyboard.press('Enter')
  await until(async () => (await thread(conversation)).some(({ content }) => content.text === 'written without a mouse'), 'the message')
  assert.ok(await hasFocus(page.getByRole('textbox', { name: 'Message' })), 'one can go on writing')
})

const talk = async (id) =>
  (await api('query($org: Id!, $id: Id!) { conversation(orgId: $org, id: $id) { takenOverBy openTurns { state } } }', { id })).conversation

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
  await isAccessible(page, 'asked whether to take over')
  await page.keyboard.press('Escape')
  await asked.waitFor({ state: 'detached' })
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
  const sheet = page.getByRole('dialog', { name: 'Keys' })
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
  await page.keyboard.press('Escape')
  await sheet.waitFor({ state: 'detached' })
  assert.ok(await single.isChecked(), 'they are on at first')
  await toggles()
  await until(async () => !(await single.isChecked()), 'the switch to be off')

  // Loaded anew: it is the account that says so.
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
  await menu.getByRole('menuitem', { name: 'All keys' }).waitFor()
  assert.equal(await menu.locator('kbd').count(), 0, 'a menu names no key that is off')
  await page.keyboard.press('Escape')
  await menu.waitFor({ state: 'detached' })
  assert.equal(await outcome(asked.approval), null)

  await page.keyboard.press('Control+k')
  await page.getByRole('dialog', { name: 'Find anything' }).waitFor()
  await page.keyboard.type('show all keys')
  await page.getByRole('option', { name: /Show all keys/, selected: true }).waitFor()
  await page.keyboard.press('Enter')
  await entry('Ctrl K').waitFor()
  await entry('↓').waitFor()
  assert.deepEqual([await entry('J').count(), await entry('G Y').count()], [0, 0], 'what is off is not shown')
  await isAccessible(page, 'in the sheet of keys')
  await tabTo(page, sheet.getByRole('link', { name: /Appearance/ }))
  await page.keyboard.press('Enter')
  await toggles()
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
  await page.keyboard.press('ArrowDown')
  await page.getByRole('option', { name: 'harbour' }).waitFor()
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
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
    await page.keyboard.press(n < 8 ? 'Tab' : 'Shift+Tab')
    const inside = await page.evaluate(() => document.activeElement === document.body || Boolean(document.activeElement.closest('[role="dialog"], [data-base-ui-focus-guard]')))
    assert.ok(inside, 'the page behind cannot be reached')
  }
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'hidden' })
})
