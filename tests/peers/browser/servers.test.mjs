import assert from 'node:assert/strict'
import { test } from 'node:test'
import { call, hasEntered, intercepts, record } from './acts.mjs'
import { api, browse, isAccessible, isAccessibleInBoth, shows, stage, until, world } from './stage.mjs'

const at = (path) => `/o/${world.org}${path}`
const PROVISION = 'mst_prov_'

const create = async (name) => {
  const { createServer } = await api('mutation($org: Id!, $name: String!) { createServer(orgId: $org, input: { name: $name }) { id name } }', { name })
  return createServer.id
}
const serverOf = async (name) => {
  const { servers } = await api('query($org: Id!, $name: String) { servers(orgId: $org, page: 1, limit: 50, search: $name) { data { id name status revision region } } }', { name })
  return servers.data.find((server) => server.name === name)
}

test('a server is made, its line is shown once, and the panel sees it join', async (t) => {
  const page = await browse(t, { as: 'ADMIN', at: at('/servers') })
  await page.getByRole('row', { name: 'harbour' }).waitFor()
  await shows(page, 'servers-light')
  await page.getByRole('button', { name: 'New server' }).click()
  await page.getByLabel('Name', { exact: true }).fill('dock')
  await page.getByRole('button', { name: 'Create the server' }).click()
  const dialog = page.getByRole('dialog', { name: 'Connect dock' })
  const line = await dialog.getByLabel('Or, to try it out, as yourself', { exact: true }).textContent()
  const token = await dialog.getByLabel('The token', { exact: true }).textContent()
  const { id } = await serverOf('dock')
  assert.equal(line, `muster host join --url ${world.base} --token-stdin --dir ~/muster-host-${id} && muster host run --dir ~/muster-host-${id}`)
  const service = await dialog.getByLabel('The line to run as root: a service with a user of its own', { exact: true }).textContent()
  assert.match(service, /runuser -u muster-host -- muster host join/)
  assert.ok(!service.includes(PROVISION), 'no line contains the token')
  await shows(page, 'server-line')
  await hasEntered(dialog)
  await page.keyboard.press('Escape')
  assert.ok(await dialog.isVisible(), 'Esc does not lose it')
  const done = dialog.getByRole('button', { name: 'Done' })
  assert.ok(await done.isDisabled())
  await dialog.getByText('Waiting for dock to join…').waitFor()
  await stage(`types echo '${token}' | ${line}`)
  await dialog.getByText('dock has joined').waitFor()
  await done.click()
  await page.getByRole('heading', { name: 'dock', exact: true }).waitFor()
  assert.ok(!(await page.content()).includes(PROVISION), 'the token is gone')
})

test('a server shows what it is and what runs on it', async (t) => {
  const { serverId } = await record('agent', world.agent, 'serverId')
  const page = await browse(t, { as: 'VIEWER', at: at(`/servers/${serverId}`) })
  await page.getByText('plain processes').waitFor()
  await page.getByRole('link', { name: /harbour/ }).first().waitFor()
  await shows(page, 'server-light')
  const renew = page.getByRole('button', { name: 'New token' })
  assert.equal(await renew.getAttribute('aria-disabled'), 'true')
  await renew.press('Enter')
  await page.getByRole('dialog', { name: 'You may not do this' }).getByText('server.edit').first().waitFor()
  const renews = 'mutation($o: Id!, $id: Id!) { regenerateProvisioningToken(orgId: $o, id: $id) { id } }'
  assert.deepEqual((await call(page, renews, { id: serverId })).codes, ['PERMISSION_DENIED'])
})

test('a server shows its load over time, with gaps, as plots and as a table', async (t) => {
  const id = await create('breakwater')
  const page = await browse(t, { as: 'VIEWER', at: at(`/servers/${id}`) })
  await page.getByText('Nothing in this period').waitFor()
  const asked = []
  await intercepts(page, 'serverLoad(', (route) => {
    const { since, before } = route.request().postDataJSON().variables
    asked.push((Date.parse(before) - Date.parse(since)) / 86_400_000)
    const noon = Math.floor(Date.parse(before) / 300_000) * 300_000
    const period = (back, cpu) => ({
      __typename: 'ServerLoad', since: new Date(noon - back * 300_000).toISOString(), before: new Date(noon - (back - 1) * 300_000).toISOString(),
      cpuAverage: cpu, cpuMaximum: cpu === null ? null : cpu + 10, memoryAverage: 50, memoryMaximum: 60, loadAverage: 0.25, loadMaximum: 1.5,
    })
    return route.fulfill({ json: { data: { serverLoad: [period(90, 20), period(89, 30), period(60, 40), period(59, null), period(58, 70)] } } })
  })
  await page.getByLabel('Period', { exact: true }).selectOption('14')
  const lines = async (name) => {
    const plot = page.getByRole('img', { name: new RegExp(`^${name} over time`) })
    await plot.waitFor()
    return plot.locator('path').evaluateAll((paths) => paths.map((path) => path.getAttribute('d').split('M').length - 1))
  }
  assert.deepEqual(await lines('Processor'), [3, 3], 'where nothing was measured, the line ends')
  assert.deepEqual(await lines('Memory'), [2, 2])
  assert.equal(asked[0], 14, 'days')
  await isAccessibleInBoth(page, 'with plots')
  await shows(page, 'server-load')
  await page.getByText('Numbers', { exact: true }).click()
  const table = page.getByRole('table', { name: 'Load over time, average and highest' })
  const cells = await table.getByRole('row').nth(1).getByRole('cell').allTextContents()
  assert.deepEqual(cells, ['70 % · 80 %', '50 % · 60 %', '0.25 · 1.50'], 'the newest first')
  assert.equal(await table.getByRole('row').count(), 6)
  await isAccessible(page, 'with the table')
  await page.setViewportSize({ width: 375, height: 800 })
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'nothing sticks out')
})

test('a new token says what it cuts off, and is shown once', async (t) => {
  const id = await create('quay')
  const page = await browse(t, { as: 'ADMIN', at: at(`/servers/${id}`) })
  await page.getByRole('button', { name: 'New token' }).click()
  await page.getByText('The token that was shown before stops working.').waitFor()
  await page.getByRole('button', { name: 'Make a new token' }).click()
  const dialog = page.getByRole('dialog', { name: 'Connect quay' })
  assert.match(await dialog.getByLabel('The token', { exact: true }).textContent(), /^mst_prov_/)
  await dialog.getByLabel('I have stored it').check()
  await dialog.getByRole('button', { name: 'Done' }).click()
  await dialog.waitFor({ state: 'hidden' })
  await page.getByRole('button', { name: 'New token' }).click()
  await page.getByRole('button', { name: 'Cancel' }).click()
})

test('a host that a service token let in waits until an admin confirms it', async (t) => {
  const made = 'mutation($org: Id!) { createServer(orgId: $org, input: { name: "mole" }) { id provisioningToken } }'
  const { createServer: { id, provisioningToken } } = await api(made)
  await stage(`types echo '${provisioningToken}' | muster host join --url ${world.base} --token-stdin --dir ~/muster-host-${id}`)
  const host = async () => (await record('server', id, 'host { confirmedAt }')).host
  await until(host, 'the host')
  const viewer = await browse(t, { as: 'VIEWER', at: at(`/servers/${id}`) })
  await viewer.getByRole('heading', { name: 'Not confirmed' }).waitFor()
  const refused = viewer.getByRole('button', { name: 'Confirm', exact: true })
  assert.equal(await refused.getAttribute('aria-disabled'), 'true')
  await refused.press('Enter')
  await viewer.getByRole('dialog', { name: 'You may not do this' }).getByText('server.edit').first().waitFor()
  const page = await browse(t, { as: 'ADMIN', at: at(`/servers/${id}`) })
  await page.getByText('the service token').waitFor()
  await page.getByText('127.0.0.1').waitFor()
  await isAccessible(page, 'not confirmed')
  await shows(page, 'server-not-confirmed')
  await page.getByRole('button', { name: 'Confirm', exact: true }).click()
  await page.getByText('Confirmed the host of mole').waitFor()
  await page.getByRole('heading', { name: 'Not confirmed' }).waitFor({ state: 'hidden' })
  assert.ok((await host()).confirmedAt)
})

test('a server is renamed and labelled, and another person’s change is not overwritten', async (t) => {
  const id = await create('pier')
  const page = await browse(t, { as: 'ADMIN', at: at(`/servers/${id}`) })
  await page.getByLabel('Labels').fill('rack=4\nspare')
  await page.getByLabel('Location').fill('cellar')
  await page.getByRole('button', { name: 'Save' }).click()
  await until(async () => (await serverOf('pier')).region === 'cellar', 'the region')
  assert.deepEqual((await record('server', id, 'labels')).labels, { rack: '4', spare: '' })
  await page.getByLabel('Name', { exact: true }).fill('landing')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('heading', { name: 'landing' }).waitFor()
})

test('a server with agents stays; an empty one is deleted by its typed name', async (t) => {
  const { serverId } = await record('agent', world.agent, 'serverId')
  const page = await browse(t, { as: 'ADMIN', at: at(`/servers/${serverId}`) })
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  const dialog = page.getByRole('alertdialog')
  await dialog.getByLabel('Type harbour to confirm').fill('harbour')
  await dialog.getByRole('button', { name: 'Delete the server' }).click()
  await dialog.getByText(/This server has agents/).waitFor()
  await isAccessible(page, 'with a refusal')
  const id = await create('jetty')
  await page.goto(`${world.base}${at(`/servers/${id}`)}`)
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  await dialog.getByLabel('Type jetty to confirm').fill('jetty')
  await dialog.getByRole('button', { name: 'Delete the server' }).click()
  await page.waitForURL(/\/servers$/)
  assert.equal(await serverOf('jetty'), undefined)
})

test('on a phone, servers can be read', async (t) => {
  const page = await browse(t, { as: 'OPERATOR', width: 375, at: at('/servers') })
  await page.getByRole('row', { name: 'harbour' }).waitFor()
  await isAccessible(page, 'on a phone')
  await page.getByRole('row', { name: 'harbour' }).click()
  await page.getByText('plain processes').waitFor()
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'nothing sticks out')
  await isAccessible(page, 'at one, on a phone')
  await shows(page, 'server-phone')
})
