import assert from 'node:assert/strict'
import { test } from 'node:test'
import { opens } from './acts.mjs'
import { PAGES } from './pages.mjs'
import { browse, forEach, isAccessibleInBoth } from './stage.mjs'

test('every page is whole for a viewer, light and dark: what one may not see says so', async (t) => {
  const page = await browse(t, { as: 'VIEWER', fails: ['/graphql'] })
  await forEach(PAGES, async (each) => {
    await opens(page, each)
    assert.equal(await page.getByText('This page crashed').count(), 0, `${each.name} does not fail`)
    await isAccessibleInBoth(page, `on ${each.name} for a viewer`)
  })
})
