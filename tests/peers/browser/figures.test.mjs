// Measures what people feel, and writes it to target/panel/figures.json. Nothing is asserted about how fast it is: machines
// differ. MUSTER_ROUNDS says how often each figure is taken; docs/performance.md has the results.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { begins, denies } from './acts.mjs'
import { api, browse, keeps, stage, until, world } from './stage.mjs'

const ROUNDS = Number(process.env.MUSTER_ROUNDS ?? 5)
const org = `/o/${world.org}`
const figures = { rounds: ROUNDS }
after(() => keeps('figures.json', `${JSON.stringify(figures, null, 2)}\n`))

/** The median and the 95th percentile, in the unit of the numbers. */
function summed(numbers) {
  assert.ok(numbers.length > 0 && numbers.every(Number.isFinite), String(numbers))
  const sorted = numbers.toSorted((a, b) => a - b)
  const at = (part) => Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] * 10) / 10
  return { median: at(0.5), p95: at(0.95), n: sorted.length }
}

/** Notes when something can first be used: in the frame in which it is there. */
const watchFor = (selector) => {
  const look = () => {
    if (document.querySelector(selector)) window.usableAt = performance.now()
    else requestAnimationFrame(look)
  }
  requestAnimationFrame(look)
}

/** Loads a page with nothing kept from before. */
async function firstLoad(t, { as, at, selector }) {
  const page = await browse(t, { as })
  const network = await page.context().newCDPSession(page)
  await network.send('Network.enable')
  let bytes = 0
  network.on('Network.loadingFinished', ({ encodedDataLength }) => {
    bytes += encodedDataLength
  })
  await page.addInitScript(watchFor, selector)
  await page.goto(world.base + at)
  await page.waitForFunction(() => window.usableAt !== undefined)
  const kb = bytes / 1024
  const paint = await until(
    () => page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime),
    'the first paint',
  )
  const usable = await page.evaluate(() => window.usableAt)
  await page.context().close()
  return { kb, paint, usable }
}

for (const [name, what] of Object.entries({
  'sign-in': { at: '/sign-in', selector: 'input[type=email]' },
  overview: { as: 'OPERATOR', at: org, selector: 'main dl a' },
})) {
  test(`first load: ${name}`, { timeout: 300_000 }, async (t) => {
    const taken = []
    for (let n = 0; n < ROUNDS; n += 1) taken.push(await firstLoad(t, what))
    figures[`first load, ${name}`] = {
      'KB over the network': summed(taken.map(({ kb }) => kb)),
      'ms to the first contentful paint': summed(taken.map(({ paint }) => paint)),
      'ms until it can be used': summed(taken.map(({ usable }) => usable)),
    }
  })
}

/** A thousand approvals wait, none of which expires soon. */
async function fills() {
  const later = new Date(Date.now() + 300 * 86_400_000).toISOString()
  await stage(`seed --agents 20 --approvals 5200 --until ${later}`)
}

/** Presses a key, and answers how many milliseconds passed until the frame with what it did was painted. */
async function pressed(page, key) {
  await page.evaluate(() => {
    const from = document.activeElement
    window.painted = new Promise((resolve) => {
      const stamp = (event) =>
        requestAnimationFrame(() => {
          const { port1, port2 } = new MessageChannel()
          // Comes after the frame's paint.
          port1.onmessage = () => resolve({ ms: performance.now() - event.timeStamp, moved: document.activeElement !== from })
          port2.postMessage(null)
        })
      addEventListener('keydown', stamp, { capture: true, once: true })
    })
  })
  await page.keyboard.press(key)
  const { ms, moved } = await page.evaluate(() => window.painted)
  assert.ok(moved, 'another row has the focus in the painted frame')
  return ms
}

async function presses(page, key) {
  const taken = []
  for (let n = 0; n < ROUNDS * 4; n += 1) {
    taken.push(await pressed(page, key))
    // People pause between keys; what a key set off is over.
    await page.waitForTimeout(120)
  }
  return summed(taken)
}

test('key press to paint in an inbox of a thousand', { timeout: 300_000 }, async (t) => {
  await fills()
  const page = await browse(t, { as: 'OPERATOR', at: `${org}/approvals` })
  const list = page.getByRole('grid', { name: 'Approvals' })
  await list.locator('[data-index]').first().waitFor()
  // All of them are read, not only the first page.
  const count = () => list.getAttribute('aria-rowcount').then(Number)
  await until(async () => {
    await list.evaluate((scroller) => scroller.scrollBy(0, 20_000))
    return (await count()) >= 1_000
  }, 'all of them')
  await list.evaluate((scroller) => scroller.scrollTo(0, 0))
  await page.mouse.move(5, 5)
  await page.waitForTimeout(500)
  await page.keyboard.press('j')
  const closed = await presses(page, 'j')
  await page.keyboard.press('Enter')
  await page.getByRole('complementary').waitFor()
  await page.waitForTimeout(500)
  const open = await presses(page, 'j')
  figures['key press to paint'] = { approvals: await count(), 'ms, J': closed, 'ms, J with an approval open beside': open }
})

/** Notes, by the clock that the service has too, when the row of an approval was painted inside the list's view. */
const watchRows = () => {
  window.seen = {}
  const look = () => {
    for (const row of document.querySelectorAll('[role=row][aria-label^="Figure "]')) {
      const name = row.getAttribute('aria-label').split(',')[0]
      const box = row.closest('[role=grid]').getBoundingClientRect()
      const { top, bottom } = row.getBoundingClientRect()
      if (window.seen[name] || top < box.top || bottom > box.bottom) continue
      window.seen[name] = Number.POSITIVE_INFINITY
      requestAnimationFrame(() => {
        const { port1, port2 } = new MessageChannel()
        port1.onmessage = () => {
          window.seen[name] = Date.now()
        }
        port2.postMessage(null)
      })
    }
  }
  new MutationObserver(look).observe(document, { childList: true, subtree: true, attributes: true })
}

test('an approval that an agent asks, until it is seen', { timeout: 300_000 }, async (t) => {
  const page = await browse(t, { as: 'OPERATOR', height: 1_400 })
  await page.addInitScript(watchRows)
  const taken = []
  for (let n = 0; n < ROUNDS * 2; n += 1) {
    if (n % 8 === 0) {
      // Those that were asked have an end soon, so they stand above those that were there.
      await page.goto(`${world.base}${org}/approvals?sort=EXPIRES`)
      await page.getByRole('grid', { name: 'Approvals' }).locator('[data-index]').first().waitFor()
      await page.mouse.move(5, 5)
      await page.waitForTimeout(1_000)
    }
    const name = `Figure ${n}`
    const id = await begins(`do execute ${name} {"command": "make ${n}"}`)
    const seen = await until(() => page.evaluate((of) => Number.isFinite(window.seen[of]) && window.seen[of], name), name)
    const { approvalFeed } = await api(
      'query($org: Id!, $id: Id!) { approvalFeed(orgId: $org, conversationId: $id) { data { id createdAt } } }',
      { id },
    )
    taken.push(seen - Date.parse(approvalFeed.data[0].createdAt))
    await denies(approvalFeed.data[0].id)
    await page.waitForTimeout(700)
  }
  figures['event to paint'] = { 'ms from the approval’s instant until it is seen': summed(taken) }
})
