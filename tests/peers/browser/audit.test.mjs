import assert from 'node:assert/strict'
import { test } from 'node:test'
import { call, downloads, fresh, row } from './acts.mjs'
import { api, browse, isAccessible, shows, until, world } from './stage.mjs'

const log = `/o/${world.org}/audit`

/** A skill that was made and renamed. */
async function skill() {
  const name = fresh('kept-')
  const { createSkill } = await api(
    'mutation($org: Id!, $name: String!) { createSkill(orgId: $org, input: { name: $name, content: "" }) { id } }',
    { name },
  )
  await api(
    'mutation($org: Id!, $id: Id!, $name: String!) { updateSkill(orgId: $org, id: $id, input: { name: $name }) { id } }',
    { id: createSkill.id, name: `${name}-two` },
  )
  return { id: createSkill.id, name }
}

test('what was just done is in the log, with each field that changed', async (t) => {
  const page = await browse(t, { as: 'OWNER', at: log })
  await page.getByRole('grid', { name: 'Audit log' }).waitFor()
  const { name } = await skill()
  const entry = row(page, `Update skill ${name}-two`)
  await entry.waitFor()
  await entry.click()
  const one = page.getByRole('complementary')
  const change = one.getByRole('region', { name: 'What changed' })
  await change.getByText(`After: ${name}-two`).waitFor()
  await shows(page, 'audit-light')
})

test('the span that is named is the one of the address, also after another one was chosen', async (t) => {
  const page = await browse(t, { as: 'OWNER', at: log })
  const when = (span) => page.getByRole('button', { name: `When: ${span}`, exact: true })
  await page.getByRole('button', { name: 'When', exact: true }).click()
  await page.getByRole('menuitem', { name: 'In the last hour' }).click()
  await page.waitForURL(/[?&]from=/)
  await when('In the last hour').waitFor()
  await page.evaluate((address) => history.pushState({}, '', address), `${log}?from=2026-01-01T00:00:00.000Z`)
  await when('From the address').waitFor()
})

test('parts of an entry lead to others like it; the filter stands in the address and as a chip', async (t) => {
  const { id, name } = await skill()
  const page = await browse(t, { as: 'ADMIN', at: log })
  await row(page, `Update skill ${name}-two`).click()
  await page.getByRole('button', { name: 'History of this record' }).click()
  await until(async () => (await page.getByRole('row', { name: /skill/ }).count()) === 2, 'its two entries')
  assert.equal(new URL(page.url()).searchParams.get('target'), String(id))
  await page.reload()
  await until(async () => (await page.getByRole('row', { name: /skill/ }).count()) === 2, 'the same after a reload')
  const chip = page.getByRole('button', { name: new RegExp(`Remove the filter: Skill ${id}`) })
  await isAccessible(page, 'with a chip')
  await chip.click()
  await chip.waitFor({ state: 'detached' })
  await page.goBack()
  await chip.waitFor()
  await page.goto(`${world.base}${log}?outcome=REFUSED&q=nothing-like-this`)
  await page.getByRole('heading', { name: 'No entries' }).waitFor()
  await isAccessible(page, 'without entries')
})

test('the export works with only the cookie, and is refused to people who may not see the log', async (t) => {
  const page = await browse(t, { as: 'OWNER', at: log })
  await page.getByRole('button', { name: 'Export…' }).click()
  const dialog = page.getByRole('dialog', { name: 'Export the audit log' })
  await dialog.getByLabel('Period').selectOption('ALL')
  const send = dialog.getByRole('button', { name: 'Export', exact: true })
  const { text } = await downloads(page, async () => {
    await send.click()
    await page.getByText(/^Exporting the audit log from the first entry to now/).waitFor()
  })
  const lines = text.trim().split('\n')
  assert.ok(lines.length > 3 && lines.every((line) => typeof JSON.parse(line) === 'object'), text.slice(0, 200))

  const viewer = await browse(t, { as: 'VIEWER', at: log, fails: ['/export/', '/graphql'] })
  await viewer.getByRole('heading', { name: 'You may not see this' }).waitFor()
  assert.equal(await viewer.getByRole('button', { name: 'Export…' }).count(), 0)
  assert.equal(await viewer.evaluate(async (address) => (await fetch(address)).status, `/export/audit/${world.org}`), 403)
  const { codes } = await call(viewer, 'query($o: Id!) { auditLog(orgId: $o, page: 1, limit: 10) { total } }')
  assert.deepEqual(codes, ['PERMISSION_DENIED'])
})
