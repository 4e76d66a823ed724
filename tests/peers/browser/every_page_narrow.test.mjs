import assert from 'node:assert/strict'
import { test } from 'node:test'
import { opens } from './acts.mjs'
import { flaws } from './looks.mjs'
import { BEFORE, PAGES } from './pages.mjs'
import { browse, shows } from './stage.mjs'

// A window of 1280 pixels at 200 % and at 400 %, as WCAG asks (1.4.4, 1.4.10), and a phone.
const WIDTHS = { 'zoom-200': [640, 400], 'zoom-400': [320, 256], phone: [375, 720] }

for (const [name, [width, height]] of Object.entries(WIDTHS)) {
  test(`nothing is cut off or covered at ${width} pixels`, async (t) => {
    const found = {}
    for (const [as, pages] of [['OWNER', PAGES], [undefined, BEFORE]]) {
      const page = await browse(t, { as, width, height })
      for (const each of pages) {
        await opens(page, each)
        const wrong = await flaws(page)
        if (wrong.length > 0) found[each.name] = wrong
        await shows(page, `${each.name}-${name}`)
      }
    }
    assert.deepEqual(found, {})
  })
}
