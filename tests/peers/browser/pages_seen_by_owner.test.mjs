import assert from 'node:assert/strict'
import { test } from 'node:test'
import { opens } from './acts.mjs'
import { leftEdges } from './looks.mjs'
import { BEFORE, PAGES } from './pages.mjs'
import { browse, forEach, isAccessibleInBoth, showsBoth } from './stage.mjs'

test('every page is whole for an owner, light and dark', async (t) => {
  const page = await browse(t, { as: 'OWNER' })
  await forEach(PAGES, async (each) => {
    await opens(page, each)
    assert.equal(await page.getByText('This page crashed').count(), 0, `${each.name} does not fail`)
    const edges = await leftEdges(page)
    assert.ok(new Set(Object.values(edges)).size <= 1, `${each.name} has one left edge: ${JSON.stringify(edges)}`)
    await isAccessibleInBoth(page, `on ${each.name}`)
    await showsBoth(page, `${each.name}-page`)
  })
})

test('every page before signing in is whole, light and dark', async (t) => {
  const page = await browse(t)
  await forEach(BEFORE, async (each) => {
    await opens(page, each)
    await isAccessibleInBoth(page, `on ${each.name}`)
    await showsBoth(page, `${each.name}-page`)
  })
})
