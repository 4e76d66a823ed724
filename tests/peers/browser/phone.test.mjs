import assert from 'node:assert/strict'
import { test } from 'node:test'
import { asks, begins, hops, outcome, row } from './acts.mjs'
import { browse, isAccessible, shows, until, world } from './stage.mjs'

const phone = { width: 375, height: 700, hasTouch: true, isMobile: true }
const fits = async (page, where) => {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
  assert.ok(wide <= 0, `${where} is ${wide} pixels too wide`)
}
/** What is pressed to decide can be hit with a thumb. */
const isLarge = async (button, what) => {
  const { height } = await button.boundingBox()
  assert.ok(height >= 44, `${what} is ${height} pixels high`)
}

test('an approval is decided on a phone, from the list', async (t) => {
  const asked = await asks('do execute Load the ferry {"command": "load"}')
  const page = await browse(t, { as: 'OPERATOR', ...phone, at: `/o/${world.org}/approvals` })
  await row(page, 'Load the ferry').waitFor()
  await fits(page, 'the inbox')
  await isAccessible(page, 'in the inbox on a phone')
  await shows(page, 'approvals-phone')
  await row(page, 'Load the ferry').tap()
  const approve = page.getByRole('button', { name: 'Approve', exact: true })
  await approve.waitFor()
  await fits(page, 'the approval')
  await isLarge(approve, 'Approve')
  await isAccessible(page, 'in an approval on a phone')
  await shows(page, 'approval-phone')
  await approve.tap()
  await until(async () => (await outcome(asked.approval)) === 'APPROVED', 'the approval')
})

test('a risky one is held on a phone, from the link in a mail', async (t) => {
  const asked = await asks('do execute Sink the wreck {"command": "rm -r wreck"}')
  const page = await browse(t, { as: 'OPERATOR', ...phone, theme: 'dark', at: `/o/${world.org}/approvals/${asked.approval}` })
  const hold = page.getByRole('button', { name: 'Hold to approve' })
  await hold.waitFor()
  await fits(page, 'the page')
  await isLarge(hold, 'Hold to approve')
  const { x, y, width, height } = await hold.boundingBox()
  await page.mouse.move(x + width / 2, y + height / 2)
  await page.mouse.down()
  await until(async () => (await outcome(asked.approval)) === 'APPROVED', 'the approval')
  await page.mouse.up()
})

test('a conversation is read and written in on a phone', async (t) => {
  const conversation = await begins('think of the tide\nhello from the quay')
  const page = await browse(t, { as: 'OPERATOR', ...phone, at: `/o/${world.org}/conversations` })
  await page.getByRole('grid', { name: 'Conversations' }).waitFor()
  await fits(page, 'the list')
  await isAccessible(page, 'in the list on a phone')
  await hops(page, `/o/${world.org}/conversations/${conversation}`)
  const box = page.getByRole('textbox', { name: 'Message' })
  await box.waitFor()
  await box.fill('hello from a phone')
  await page.getByRole('button', { name: 'Send' }).tap()
  await page.getByRole('article').getByText('hello from a phone', { exact: true }).first().waitFor()
  await fits(page, 'the conversation')
  await isAccessible(page, 'in a conversation on a phone')
  await shows(page, 'conversation-phone')
})

test('the chosen tab of a page is in view on a phone', async (t) => {
  const page = await browse(t, { as: 'OWNER', ...phone, at: `/o/${world.org}/agents/${world.agent}?tab=backups` })
  for (const at of [null, `/o/${world.org}/settings?tab=data`]) {
    if (at) await hops(page, at)
    const chosen = page.getByRole('navigation', { name: /^Parts of/ }).locator('[aria-current=page]')
    await chosen.waitFor()
    await until(async () => {
      const { x, width } = await chosen.boundingBox()
      return x >= 0 && x + width <= 375
    }, 'the tab to be in view')
  }
})
