// The documentation, the reference of /v1 and the GraphQL explorer: for visitors, with nothing from elsewhere.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { browse, until, world } from './stage.mjs'

test('the documentation is read without signing in', async (t) => {
  const page = await browse(t, { at: '/docs' })
  await page.getByRole('heading', { name: 'Documentation', level: 1 }).waitFor()
  await page.getByRole('link', { name: 'API', exact: true }).click()
  await page.getByRole('heading', { name: 'The API', level: 1 }).waitFor()
  await page.getByRole('link', { name: 'turn', exact: true }).first().click()
  await page.waitForURL(/#turns$/)
  await page.getByRole('heading', { name: 'Turns', exact: true }).waitFor()
})

test('the reference sends a request with a token', async (t) => {
  const page = await browse(t, { at: '/docs/api' })
  await page.getByRole('button', { name: 'Authorize' }).click()
  await page.locator('#auth-bearer-value').fill(world.token)
  await page.locator('.auth-btn-wrapper .authorize').click()
  await page.locator('.auth-btn-wrapper .btn-done').click()
  const operation = page.locator('#operations-agent-listAgents')
  await operation.locator('.opblock-summary-control').click()
  await operation.locator('.try-out__btn').click()
  for (const [name, value] of [['org_id', world.org], ['page', 1], ['limit', 10]])
    await operation.locator(`tr[data-param-name="${name}"] input`).fill(String(value))
  await operation.locator('.execute').click()
  const status = operation.locator('.live-responses-table .response-col_status').last()
  assert.match(await status.innerText(), /200/)
})

test('a person who is signed in explores the schema', async (t) => {
  const page = await browse(t, { as: 'VIEWER', at: '/docs/graphql' })
  await page.locator('#query').fill('{ viewer { user { name } } }')
  await page.locator('#variables').fill('')
  await page.locator('#run').click()
  const { name } = world.people.VIEWER
  await until(async () => (await page.locator('#answer').innerText()).includes(name), 'the answer')
})

test('help leads to the manual and the keys, and says the version', async (t) => {
  const page = await browse(t, { as: 'VIEWER', at: `/o/${world.org}/help` })
  const main = page.getByRole('main')
  await main.getByText(/^\d+\.\d+\.\d+/).waitFor()
  await main.getByRole('button', { name: 'Keyboard shortcuts' }).click()
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
  await page.keyboard.press('Escape')
  const [manual] = await Promise.all([
    page.waitForEvent('popup'),
    main.getByRole('link', { name: 'Approvals', exact: true }).click(),
  ])
  await manual.getByRole('heading', { name: 'Approvals', level: 1 }).waitFor()
  await page.goto(`${world.base}/o/${world.org}/agents`)
  const link = page.getByRole('link', { name: 'Documentation: this page' })
  assert.equal(await link.getAttribute('href'), '/docs/agents.md')
})

test('the documentation of a field opens in a new tab, and the form stays', async (t) => {
  const page = await browse(t, { as: 'OPERATOR', at: `/o/${world.org}/agents` })
  await page.getByRole('button', { name: 'New agent' }).click()
  const form = page.getByRole('dialog', { name: 'New agent' })
  await form.getByLabel('Name', { exact: true }).fill('Unfinished')
  const [part] = await Promise.all([
    page.waitForEvent('popup'),
    form.getByRole('link', { name: 'Documentation: instructions' }).click(),
  ])
  await part.getByRole('heading', { name: 'Instructions', exact: true }).waitFor()
  assert.match(part.url(), /\/docs\/agents\.md#instructions$/)
  assert.equal(await form.getByLabel('Name', { exact: true }).inputValue(), 'Unfinished')
})
