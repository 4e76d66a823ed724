import assert from 'node:assert/strict'
import { test } from 'node:test'
import { opens } from './acts.mjs'
import { BEFORE, HOME, inside, OWN, PAGES } from './pages.mjs'
import { browse, forEach, isAccessibleInBoth, showsBoth, stage, world } from './stage.mjs'
import { routes, tabs } from './table.mjs'

test('every address and every tab of the panel is in the table', () => {
  const listed = [...PAGES, ...BEFORE, HOME]
  const known = new Set(listed.map(({ route }) => route).filter(Boolean))
  assert.deepEqual(routes().sort(), [...known].sort())
  const shown = listed.map(({ at }) => new URLSearchParams(at.split('?')[1])).flatMap((search) => [search.get('tab'), search.get('panel')])
  for (const { path, ids } of tabs()) {
    assert.ok(ids.length > 1, `the tabs of ${path} are found`)
    for (const id of ids.slice(1)) assert.ok(shown.includes(id), `the tab ${id} of ${path} is in the table`)
  }
})

test('every page of an organization with nothing in it teaches what to do, light and dark', async (t) => {
  const { id } = await stage(`muster org create --name Empty --owner-email ${world.people.OWNER.email} --plan ENTERPRISE`)
  const page = await browse(t, { as: 'OWNER', fails: ['/graphql'] })
  await forEach(inside(id), async (each) => {
    await opens(page, each)
    if (each.route.endsWith('$id')) await page.getByRole('heading', { name: 'Not found' }).waitFor()
    await isAccessibleInBoth(page, `on ${each.name}, empty`)
    await showsBoth(page, `${each.name}-empty`)
  })
})

test('a person without an organization sees what to do', async (t) => {
  const email = 'nobody@example.org'
  const { id } = await stage(`muster org create --name Left --owner-email ${email}`)
  await stage(`muster member add --org ${id} --email ${world.people.OWNER.email} --role OWNER`)
  await stage(`muster member remove --org ${id} --email ${email}`)
  const { link } = await stage(`muster session create --link --email ${email}`)
  const page = await browse(t, { at: `/sign-in${new URL(link).hash}` })
  await page.getByRole('button', { name: 'Sign in', exact: true }).press('Enter')
  await page.getByRole('heading', { name: 'You belong to no organization yet' }).waitFor()
  await forEach([HOME, ...OWN], async (each) => {
    await opens(page, each)
    await isAccessibleInBoth(page, `on ${each.name} without an organization`)
    await showsBoth(page, `${each.name}-alone`)
  })
})
