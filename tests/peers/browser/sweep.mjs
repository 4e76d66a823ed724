// Goes through a table of layers: each opens by the keyboard, is accessible in light and dark, closes by Esc, and leaves
// the focus where it was.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hasEntered, hasFocus } from './acts.mjs'
import { isPicker, opensLayer } from './layers.mjs'
import { browse, isAccessibleInBoth, until } from './stage.mjs'

const ROLE = 'OWNER'

export function sweep(layers) {
  for (const as of new Set(layers.map((layer) => layer.as ?? ROLE))) {
    test(`everything that opens over a page does so by the keyboard, for ${as}`, async (t) => {
      const page = await browse(t, { as, fails: ['/graphql'] })
      for (const layer of layers.filter((each) => (each.as ?? ROLE) === as && !each.firm)) {
        await t.test(nameOf(layer), async () => opensAndCloses(page, layer))
      }
    })
  }
  for (const layer of layers.filter(({ firm }) => firm)) {
    test(`${nameOf(layer)}: Esc does not lose it`, async (t) => {
      const page = await browse(t, { as: ROLE, fails: ['/graphql'] })
      await opensLayer(page, layer)
      await isAccessibleInBoth(page, `in ${nameOf(layer)}`)
      await hasEntered(layer.shown(page))
      await page.keyboard.press('Escape')
      assert.ok(await layer.shown(page).isVisible())
      assert.ok(await layer.shown(page).evaluate((element) => element.contains(document.activeElement)), 'the focus stays in it')
    })
  }
}

const nameOf = ({ of, at, own }) => `${of} at ${own ?? at}`

// While choices are open, Base UI hides the rest of the page from screen readers, the field's own label with it. They close
// as soon as the focus goes elsewhere, so that it is never in what is hidden.
const WITH_CHOICES = ['aria-hidden-focus', 'label']

async function opensAndCloses(page, layer) {
  const trigger = await opensLayer(page, layer)
  await isAccessibleInBoth(page, `in ${nameOf(layer)}`, isPicker(layer) ? WITH_CHOICES : [])
  await hasEntered(layer.shown(page))
  await page.keyboard.press('Escape')
  await layer.shown(page).waitFor({ state: 'hidden' })
  const back = () => page.evaluate(() => document.activeElement !== document.body)
  await until(back, `the focus to return from ${nameOf(layer)}`)
  // What was chosen from a menu is gone with it: there the focus returns to the menu's button.
  if (trigger && !layer.through) await until(() => hasFocus(trigger), 'the focus to be where it was')
}
