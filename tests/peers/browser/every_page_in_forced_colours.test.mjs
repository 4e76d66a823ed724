import assert from 'node:assert/strict'
import { test } from 'node:test'
import { opens } from './acts.mjs'
import { flaws } from './looks.mjs'
import { opensLayer, OF_RECORDS, OF_WORK } from './layers.mjs'
import { PAGES } from './pages.mjs'
import { browse, forEach, shows, until, world } from './stage.mjs'

/** What can be pressed or filled in and has neither an outline nor words: it would be invisible. Runs in the page. */
function unseen() {
  const isSeen = (element) => {
    const style = getComputedStyle(element)
    const isFramed = [style.borderTopWidth, style.borderBottomWidth].some((width) => Number.parseFloat(width) > 0)
    return isFramed || element.innerText?.trim() || element.querySelector('svg, img') || /^(checkbox|radio|range|file)$/.test(element.type)
  }
  return [...document.querySelectorAll('button, input, select, textarea, a[href]')]
    .filter((element) => element.checkVisibility({ visibilityProperty: true }) && element.getBoundingClientRect().width > 2)
    .filter((element) => !isSeen(element))
    .map((element) => element.outerHTML.slice(0, 120))
}

test('with forced colours, everything can still be seen', async (t) => {
  const page = await browse(t, { as: 'OWNER', forcedColors: 'active' })
  await forEach(PAGES, async (each) => {
    await opens(page, each)
    assert.deepEqual(await page.evaluate(unseen), [], `on ${each.name}`)
    assert.deepEqual(await flaws(page), [], `on ${each.name}`)
    await shows(page, `${each.name}-forced`)
  })
})

test('the row, the tab and the page that one is at are marked without our colours', async (t) => {
  const page = await browse(t, { as: 'OWNER', forcedColors: 'active', at: `/o/${world.org}/agents/${world.agent}?tab=turns` })
  await page.getByRole('row').and(page.locator('[data-index]')).first().click()
  await page.getByRole('complementary').waitFor()
  for (const mark of ['[aria-selected="true"]', '[aria-current="page"]']) {
    const marks = await page.locator(mark).evaluateAll((all) => all.map((element) => getComputedStyle(element).outlineStyle))
    assert.ok(marks.length > 0 && marks.every((style) => style === 'solid'), `${mark} is marked: ${marks}`)
  }
})

/** Notes how long the longest movement of a page took, in seconds. */
const watches = (page) =>
  page.addInitScript(() => {
    window.longest = 0
    document.addEventListener('animationend', ({ elapsedTime }) => {
      window.longest = Math.max(window.longest, elapsedTime)
    }, true)
  })

test('nothing moves for people who ask for reduced motion', async (t) => {
  const layers = [...OF_WORK, ...OF_RECORDS].filter(({ of }) => /palette|create-agent|skill-peek/.test(of))
  const calm = await browse(t, { as: 'OWNER' })
  const lively = await browse(t, { as: 'OWNER', reducedMotion: 'no-preference' })
  for (const page of [calm, lively]) await watches(page)
  for (const layer of layers) {
    await opensLayer(lively, layer)
    await until(() => lively.evaluate(() => window.longest > 0.1), `${layer.of} to come in`)
    await opensLayer(calm, layer)
    await until(() => calm.evaluate(() => window.longest > 0), `${layer.of} to be there`)
    assert.ok(await calm.evaluate(() => window.longest < 0.01), `${layer.of} is there at once`)
  }
})
