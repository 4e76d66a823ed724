// Goes through pages with only Tab: each ends, and one sees where one is.
import assert from 'node:assert/strict'
import { settled } from './acts.mjs'
import { BEFORE } from './pages.mjs'
import { browse, world } from './stage.mjs'

/** What has the focus: whether it was there before, and whether one sees it. Runs in the page. */
function focused() {
  const element = document.activeElement
  if (!element || element === document.body) return { end: true }
  const walked = (window.walked ??= new Set())
  if (walked.has(element)) return { end: true }
  walked.add(element)
  const ringed = (each) => {
    const { outlineStyle, outlineWidth } = getComputedStyle(each)
    return outlineStyle !== 'none' && Number.parseFloat(outlineWidth) >= 2
  }
  const label = element.labels?.[0]
  const isRinged = [element, element.parentElement, element.parentElement?.parentElement, label, element.nextElementSibling].some((each) => each && ringed(each))
  const box = (label && element.clientWidth <= 1 ? label : element).getBoundingClientRect()
  const [x, y] = [box.left + Math.min(box.width / 2, 100), box.top + Math.min(box.height / 2, 20)]
  const hit = document.elementFromPoint(x, y)
  const isOnTop = Boolean(hit && (element.contains(hit) || hit.contains(element) || label?.contains(hit)))
  const name = (element.getAttribute('aria-label') ?? element.labels?.[0]?.innerText ?? element.innerText ?? element.localName).trim().slice(0, 40)
  return { name: `<${element.localName}> ${name}`, isRinged, isOnTop }
}

/** Tabs through a whole page. */
async function walks(page, name) {
  const stops = []
  for (;;) {
    await page.keyboard.press('Tab')
    const stop = await page.evaluate(focused)
    if (stop.end) break
    stops.push(stop)
    assert.ok(stops.length < 400, `${name} ends`)
  }
  const lost = stops.filter(({ isRinged, isOnTop }) => !isRinged || !isOnTop).map((stop) => JSON.stringify(stop))
  return { stops, lost }
}

/** Goes through pages of the table. */
export async function walksThrough(t, pages) {
  const found = {}
  const isBefore = (page) => BEFORE.includes(page)
  for (const [as, some] of [['OWNER', pages.filter((page) => !isBefore(page))], [undefined, pages.filter(isBefore)]]) {
    const page = await browse(t, { as })
    for (const each of some) {
      // Reloaded, so that Tab begins at the top.
      await page.goto(world.base + each.at)
      await settled(page)
      const { stops, lost } = await walks(page, each.name)
      assert.ok(stops.length > 0, `${each.name} has something to focus`)
      if (lost.length > 0) found[each.name] = lost
    }
  }
  assert.deepEqual(found, {})
}
