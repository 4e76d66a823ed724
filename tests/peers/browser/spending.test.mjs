import assert from 'node:assert/strict'
import { test } from 'node:test'
import { asks, begins, dialog, downloads, intercepts, outcome } from './acts.mjs'
import { api, apiAs, browse, isAccessible, isAccessibleInBoth, until, world } from './stage.mjs'

const org = `/o/${world.org}`
const button = (within, name) => within.getByRole('button', { name, exact: true })
const section = (page, title) => page.locator('form', { has: page.getByRole('heading', { name: title, exact: true }) })

/** What the organization has, as the service says it. */
async function organization(fields) {
  return (await api(`query($org: Id!) { organization(orgId: $org) { ${fields} } }`)).organization
}

test('a model credential is made, becomes the default, gets another key and is archived, and its key never returns', async (t) => {
  const page = await browse(t, { as: 'OWNER', at: `${org}/settings?tab=money` })
  const answers = []
  page.on('response', async (response) => answers.push(await response.text().catch(() => '')))
  await button(page, 'New model credential').click()
  await button(dialog(page), 'Store').click()
  await dialog(page).getByText('This can’t be empty.').first().waitFor()
  await dialog(page).getByLabel('Name', { exact: true }).fill('Wharf key')
  await dialog(page).getByLabel('Provider', { exact: true }).fill('openai')
  await dialog(page).getByLabel('Key', { exact: true }).fill('sesame-open-991')
  await button(dialog(page), 'Store').click()
  await dialog(page).waitFor({ state: 'detached' })

  const more = button(page, 'Actions for Wharf key')
  await more.click()
  await page.getByRole('menuitem', { name: 'Make it the default for openai' }).click()
  const named = async () => (await organization('modelCredentials { name isDefault hasSecret }')).modelCredentials.find(({ name }) => name === 'Wharf key')
  await until(async () => (await named()).isDefault, 'the default')
  await more.click()
  await page.getByRole('menuitem', { name: 'Replace the key…' }).click()
  await dialog(page).getByLabel('Key', { exact: true }).fill('another-secret-992')
  await button(dialog(page), 'Save').click()
  await dialog(page).waitFor({ state: 'detached' })
  assert.ok((await named()).hasSecret)
  await more.click()
  await page.getByRole('menuitem', { name: 'Archive…' }).click()
  await button(dialog(page), 'Archive').click()
  await until(async () => !(await named()), 'the archive')
  await more.waitFor({ state: 'detached' })
  const said = answers.join('\n') + (await page.content())
  assert.ok(!said.includes('sesame-open-991') && !said.includes('another-secret-992'), 'no key comes back')
})

test('a budget is typed in money, and more is allowed on top of it', async (t) => {
  const page = await browse(t, { as: 'ADMIN', at: `${org}/settings?tab=money` })
  const budget = section(page, 'Budget')
  await budget.getByLabel('A month').fill('0')
  await button(budget, 'Save').click()
  await budget.getByText('Type a number.').waitFor()
  await budget.getByLabel('A month').fill('12.50')
  await button(budget, 'Save').click()
  await until(async () => (await organization('monthlyBudgetMicro')).monthlyBudgetMicro === 12_500_000, 'the budget')
  await page.getByText('0.00 USD of 12.50 USD this month').waitFor()
  await button(page, 'Allow more this month').click()
  await dialog(page).getByLabel('How much more').fill('2.5')
  await button(dialog(page), 'Allow it').click()
  await page.getByText('0.00 USD of 15.00 USD this month').waitFor()
})

test('what is allowed counts once, also if the answer is lost and it is sent again', async (t) => {
  await apiAs('ADMIN', 'mutation($org: Id!) { updateOrganization(orgId: $org, input: { monthlyBudgetMicro: 20000000 }) { id } }')
  const allowed = async () => Number((await organization('spending { allowedMicro }')).spending.allowedMicro)
  const before = await allowed()
  const page = await browse(t, { as: 'ADMIN', at: `${org}/settings?tab=money`, fails: ['/graphql'] })
  let sent = 0
  await intercepts(page, 'AllowSpending', async (route) => {
    sent += 1
    if (sent > 1) return route.continue()
    // It is carried out, and the answer is lost.
    await route.fetch()
    await route.abort()
  })
  await button(page, 'Allow more this month').click()
  await dialog(page).getByLabel('How much more').fill('2.5')
  await button(dialog(page), 'Allow it').click()
  await dialog(page).getByText('The service did not answer.').waitFor()
  assert.equal(await allowed(), before + 2_500_000, 'it is allowed, and the page does not know it')
  await button(dialog(page), 'Allow it').click()
  await dialog(page).waitFor({ state: 'detached' })
  assert.equal(sent, 2)
  assert.equal(await allowed(), before + 2_500_000)
})

test('a host is allowed, removed and back again; an address in digits is refused at its field', async (t) => {
  const page = await browse(t, { as: 'ADMIN', at: `${org}/settings?tab=network` })
  await button(page, 'Allow a host').click()
  await dialog(page).getByLabel('Host', { exact: true }).fill('10.0.0.1')
  await button(dialog(page), 'Allow it').click()
  await until(() => dialog(page).getByLabel('Host', { exact: true }).getAttribute('aria-invalid'), 'the refusal')
  await isAccessible(page, 'with a refused host')
  await dialog(page).getByLabel('Host', { exact: true }).fill('tides.example.com')
  await button(dialog(page), 'Allow it').click()
  await page.getByText('by Ada Admin').waitFor()
  const hosts = async () => (await organization('allowedHosts { host }')).allowedHosts.map(({ host }) => host)
  await button(page, 'Remove tides.example.com').click()
  await until(async () => !(await hosts()).includes('tides.example.com'), 'its removal')
  await button(page.getByRole('status').locator('> div', { hasText: 'no longer reach' }), 'Undo').click()
  await until(async () => (await hosts()).includes('tides.example.com'), 'the undo')
})

test('who asks to reach a host is approved by allowing the host, and only by who may', async (t) => {
  const { approval } = await asks('do fetch network {"host": "charts.example.com", "port": 443}')
  const operator = await browse(t, { as: 'OPERATOR', at: `${org}/approvals/${approval}` })
  await button(operator, 'Allow this host…').press('Enter')
  await dialog(operator).getByText('You may not do this').waitFor()
  const page = await browse(t, { as: 'ADMIN', at: `${org}/approvals/${approval}` })
  await button(page, 'Allow this host…').click()
  await button(dialog(page), 'Allow it').click()
  await until(async () => (await outcome(approval)) === 'APPROVED', 'the approval')
  const { allowedHosts } = await organization('allowedHosts { host }')
  assert.ok(allowedHosts.some(({ host }) => host === 'charts.example.com'))
})

test('an agent has a limit of its own, and is allowed more within the hour', async (t) => {
  const page = await browse(t, { as: 'ADMIN', at: `${org}/agents/${world.agent}?tab=settings` })
  const guard = section(page, 'Cost guard')
  await guard.getByLabel('Limit', { exact: true }).selectOption('CUSTOM')
  await guard.getByLabel('An hour').fill('1000')
  await guard.getByLabel('When they are used up').selectOption('PAUSE')
  await button(guard, 'Save').click()
  await button(guard, 'Save').waitFor({ state: 'detached' })
  await page.goto(`${world.base}${org}/agents/${world.agent}`)
  await page.getByText(/of 1,000 measured tokens in the last hour/).waitFor()
  await button(page, 'Allow more this hour').click()
  await dialog(page).getByLabel('How much more').fill('500')
  await button(dialog(page), 'Allow it').click()
  await page.getByText(/of 1,500 measured tokens in the last hour/).waitFor()
})

test('agents read a credential only after a person has said what that means', async (t) => {
  const input = '{ name: "Tide tables", kind: "api-key", destinations: ["https://currents.example.com"], fields: [{ label: "key", value: "sesame" }] }'
  const { createCredential } = await api(`mutation($org: Id!) { createCredential(orgId: $org, input: ${input}) { id } }`)
  const page = await browse(t, { as: 'OWNER', at: `${org}/credentials?peek=${createCredential.id}` })
  await page.getByText('Used by the host, never seen by the agent').waitFor()
  await page.getByText('There it is not used').waitFor()
  await button(page, 'Allow currents.example.com…').waitFor()
  await button(page, 'Let agents read it…').click()
  await button(dialog(page), 'Let them read it').click()
  await page.getByText(/Olive Owner allowed it/).waitFor()
  await button(page, 'No longer let agents read it').click()
  await page.getByText('Used by the host, never seen by the agent').waitFor()
})

test('the plot of usage, its table, its file and the service have the same numbers', async (t) => {
  const rows = async () => (await api('query($org: Id!) { usage(orgId: $org, by: AGENT) { key label turns } }')).usage
  const turns = async () => (await rows()).reduce((sum, row) => sum + row.turns, 0)
  const before = await turns()
  await begins('hello')
  await until(async () => (await turns()) > before, 'a turn')
  const page = await browse(t, { as: 'VIEWER', at: `${org}/usage?measure=TURNS` })
  await page.getByRole('img', { name: /^Turns by agent/ }).waitFor()
  await isAccessibleInBoth(page, 'with a plot')
  const total = page.getByRole('row', { name: /^All days/ }).getByRole('cell').last()
  await until(async () => (await total.innerText()) === String(await turns()), 'the sum of the service')

  const { text } = await downloads(page, () => button(page, 'Download CSV').click())
  const [head, ...lines] = text.trim().split('\r\n')
  assert.match(head, /^Day,Agent key,Agent,Turns,/)
  assert.equal(lines.reduce((sum, line) => sum + Number(line.split(',')[3]), 0), await turns())

  const [{ label }] = await rows()
  const shown = page.getByRole('group', { name: 'Shown by agent' }).getByRole('button', { name: label })
  const column = page.getByRole('columnheader', { name: label })
  await column.waitFor()
  await shown.press('Enter')
  await column.waitFor({ state: 'detached' })
  assert.equal(await shown.getAttribute('aria-pressed'), 'false')
  await button(page, /^Grouping:/).click()
  await page.getByRole('menuitem', { name: 'by cause' }).click()
  await page.getByRole('columnheader', { name: 'Total' }).waitFor()
  await until(async () => (await total.innerText()) === String(await turns()), 'the same sum by cause')
})
