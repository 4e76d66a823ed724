import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { api, browse, keeps, stage, until, world } from './stage.mjs'

const MESSAGES = 20_000
let conversation

before(async () => {
  await stage(`seed --agents 1 --conversations 1 --messages ${MESSAGES} --one-conversation`)
  conversation = await until(async () => {
    const { conversationFeed } = await api(
      'query($org: Id!) { conversationFeed(orgId: $org, limit: 200) { data { id lastSeq } } }',
    )
    return conversationFeed.data.find(({ lastSeq }) => lastSeq > MESSAGES / 2)
  }, 'the long conversation')
})

const nodes = (page) => page.locator('[data-message]').count()
const at = (search = '') => `/o/${world.org}/conversations/${conversation.id}${search}`
/** Where a message stands, from the top of what scrolls, as a person sees it: after a frame. */
const placeOf = (page, seq) =>
  page.evaluate(async (wanted) => {
    await new Promise((painted) => requestAnimationFrame(() => setTimeout(painted)))
    // A tool's result stands inside its call.
    const found = document.querySelector(`[data-seq="${wanted}"], [data-through="${wanted}"]`)
    return found ? Math.round(found.getBoundingClientRect().top - found.closest('[role="log"]').getBoundingClientRect().top) : null
  }, seq)
const topSeq = (page) =>
  page.evaluate(() => {
    const box = document.querySelector('[role="log"]').getBoundingClientRect()
    const found = [...document.querySelectorAll('[data-seq]:not([data-loose])')].find((each) => each.getBoundingClientRect().bottom > box.top + 1)
    return Number(found.dataset.seq)
  })

test('a long conversation opens at any message, with few of them in the page', async (t) => {
  const middle = Math.floor(conversation.lastSeq / 2)
  const page = await browse(t, { as: 'ADMIN', at: at(`?seq=${middle}`) })
  await until(async () => (await placeOf(page, middle)) !== null, 'the message')
  const place = await placeOf(page, middle)
  assert.ok(place >= 0 && place < 700, `it is in view, at ${place}`)
  assert.ok((await nodes(page)) < 400)
})

/** Goes to a message from within the page, and answers when it stands in the view. */
const jump = (page, seq) =>
  page.evaluate(
    async ([wanted, address]) => {
      const from = performance.now()
      history.pushState({}, '', address)
      const isInView = () => {
        const found = document.querySelector(`[data-seq="${wanted}"], [data-through="${wanted}"]`)
        if (!found) return false
        const [row, box] = [found, found.closest('[role="log"]')].map((each) => each.getBoundingClientRect())
        return row.bottom > box.top && row.top < box.bottom
      }
      // Only patience: a minute of frames.
      for (let frame = 0; frame < 3_600 && !isInView(); frame += 1) await new Promise(requestAnimationFrame)
      return isInView() ? Math.round(performance.now() - from) : null
    },
    [seq, at(`?seq=${seq}`)],
  )

test('a jump to any message asks once, for what is around it, and shows it', async (t) => {
  const page = await browse(t, { as: 'ADMIN', at: at('?seq=1') })
  await until(async () => (await placeOf(page, 1)) !== null, 'the first message')
  const asked = []
  page.on('request', (request) => {
    const { operationName, variables } = request.url().endsWith('/graphql') ? (request.postDataJSON() ?? {}) : {}
    if (operationName === 'ThreadMessages' && variables.aroundSeq) asked.push(Number(variables.aroundSeq))
  })
  // There and back, so that none of them is in memory.
  const far = [0.5, 0.02, 0.75, 0.25, 0.98, 0.1, 0.6, 0.35, 1].map((part) => Math.ceil(conversation.lastSeq * part))
  const taken = []
  for (const seq of far) {
    taken.push((await jump(page, seq)) ?? assert.fail(`message ${seq} is not shown`))
    assert.ok((await nodes(page)) < 400)
  }
  assert.deepEqual(asked, far, 'one question for each')
  const figures = { messages: conversation.lastSeq, 'ms until a message that was jumped to is in view': taken }
  keeps('jumps.json', `${JSON.stringify(figures)}\n`)
  t.diagnostic(JSON.stringify(figures))
})

test('the position does not move while older ones load', async (t) => {
  const page = await browse(t, { as: 'ADMIN', at: at() })
  await page.locator('[data-message]').last().waitFor()
  const log = page.getByRole('log')
  for (let n = 0; n < 12; n += 1) {
    const before = await topSeq(page)
    await log.evaluate((element) => element.scrollBy(0, -900))
    // Until what came into view is measured, however slow the machine: frames, not milliseconds.
    await page.evaluate(async () => {
      for (let frame = 0; frame < 5; frame += 1) await new Promise(requestAnimationFrame)
    })
    const seq = await topSeq(page)
    const place = await placeOf(page, seq)
    await page.waitForTimeout(400)
    assert.equal(await topSeq(page), seq, 'the same message stands at the top')
    assert.ok(Math.abs((await placeOf(page, seq)) - place) <= 1, 'and at the same height')
    assert.ok(seq <= before)
    assert.ok((await nodes(page)) < 400)
  }
})

test('going to another page and back leads to the same line', async (t) => {
  const page = await browse(t, { as: 'ADMIN', at: at(`?seq=${Math.floor(conversation.lastSeq / 3)}`) })
  await page.locator('[data-message]').first().waitFor()
  await page.waitForTimeout(500)
  await page.getByRole('log').evaluate((element) => element.scrollBy(0, 333))
  await page.waitForTimeout(500)
  const seq = await topSeq(page)
  const place = await placeOf(page, seq)
  await page.getByRole('link', { name: 'Conversations' }).first().click()
  await page.getByRole('grid', { name: 'Conversations' }).waitFor()
  await page.goBack()
  await until(async () => (await placeOf(page, seq)) !== null, 'the message')
  await page.waitForTimeout(500)
  assert.ok(Math.abs((await placeOf(page, seq)) - place) <= 1)
})

test('the first and the newest message are one step away', async (t) => {
  const page = await browse(t, { as: 'ADMIN', at: at('?seq=1') })
  await until(async () => (await placeOf(page, 1)) !== null, 'the first message')
  await page.getByRole('button', { name: /Newest/ }).click()
  await until(async () => (await placeOf(page, conversation.lastSeq)) !== null, 'the newest one')
  const left = () =>
    page.getByRole('log').evaluate((element) => element.scrollHeight - element.scrollTop - element.clientHeight)
  await until(async () => (await left()) < 40, 'the end to be in view')
  assert.ok((await nodes(page)) < 400)
})

test('each hit of a search leads to its message, one after the other', async (t) => {
  const page = await browse(t, { as: 'ADMIN', at: at('?q=order') })
  const hits = page.getByRole('search').getByRole('link')
  await hits.first().waitFor()
  const count = await hits.count()
  for (const n of [count - 1, Math.floor(count / 2), 0]) {
    const seq = Number(new URL(await hits.nth(n).getAttribute('href'), world.base).searchParams.get('seq'))
    await hits.nth(n).click()
    await until(async () => {
      const place = await placeOf(page, seq)
      return place !== null && place >= 0 && place < 700
    }, `message ${seq}`)
    assert.ok((await nodes(page)) < 400)
  }
})
