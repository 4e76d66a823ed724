// Thousands of rows: few of them are in the page, the place holds while others arrive, and what is marked stays marked.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { asks, begins, deferred, record } from './acts.mjs'
import { api, apiAs, browse, stage, until, world } from './stage.mjs'

const org = `/o/${world.org}`
/** More than a screen, and what is kept ready above and below it; far less than a page of the service. */
const FEW = 80

before(async () => {
  await stage('seed --agents 1500 --conversations 2500 --messages 5000 --members 1100')
  // What waits has not expired, and does so after everything that is asked here.
  const later = new Date(Date.now() + 300 * 86_400_000).toISOString()
  await stage(`seed --agents 1 --approvals 3600 --until ${later}`)
})

const grid = (page, name) => page.getByRole('grid', { name })
const rows = (page, name) => grid(page, name).locator('[data-index]')
const waits = (page) => page.getByRole('button', { name: /changed, refresh the order/ })

/** The name and the place of the first row that is wholly in view. */
const top = (page, name) =>
  grid(page, name).evaluate((scroller) => {
    const from = scroller.getBoundingClientRect().top
    const places = [...scroller.querySelectorAll('[data-index]')].map((each) => [
      Math.round(each.getBoundingClientRect().top - from),
      each.getAttribute('aria-label'),
    ])
    return places.filter(([y]) => y >= 40).sort(([a], [b]) => a - b)[0]
  })

/** Scrolls down to a row so far down; what is missing is read meanwhile. */
async function goesTo(page, name, index) {
  await until(async () => {
    await grid(page, name).evaluate((scroller) => scroller.scrollBy(0, 2_000))
    assert.ok((await rows(page, name).count()) <= FEW, 'few rows are in the page')
    return Number(await rows(page, name).last().getAttribute('data-index')) >= index
  }, `row ${index}`)
  // Until what was asked for on the way is there.
  await page.waitForTimeout(1_000)
}

const newAgent = async () => {
  const { serverId } = await record('agent', world.agent, 'serverId')
  const create = 'mutation($org: Id!, $input: CreateAgentInput!) { createAgent(orgId: $org, input: $input) { id } }'
  await api(create, { input: { name: `000 ${Date.now()}`, serverId } })
}
const LISTS = [
  { name: 'Agents', at: `${org}/agents`, arrives: newAgent },
  { name: 'Conversations', at: `${org}/conversations`, arrives: () => begins('One more') },
  { name: 'Approvals', at: `${org}/approvals?sort=EXPIRES`, arrives: () => asks('do execute Wipe the deck {"command": "rm -rf deck"}') },
]

for (const { name, at, arrives } of LISTS) {
  test(`${name}: few of thousands are in the page, and the place holds while others arrive`, async (t) => {
    const page = await browse(t, { as: 'OWNER', at })
    await rows(page, name).first().waitFor()
    await goesTo(page, name, 400)
    const nodes = await page.evaluate(() => document.querySelectorAll('*').length)
    assert.ok(nodes < 3_000, `${nodes} nodes`)

    // The pointer is elsewhere: only the place in the list says that a person reads there.
    await page.mouse.move(5, 5)
    const before = await top(page, name)
    await arrives()
    await waits(page).waitFor()
    assert.deepEqual(await top(page, name), before, 'the same row stands at the same height')
    await waits(page).click()
    await waits(page).waitFor({ state: 'detached' })
    // Everything that came before is still there to be scrolled to.
    await goesTo(page, name, 600)
  })

  test(`${name}: the row under the keys stays the same one while others arrive above it`, async (t) => {
    const page = await browse(t, { as: 'OWNER', at })
    await rows(page, name).first().waitFor()
    await page.mouse.move(5, 5)
    for (let n = 0; n < 5; n += 1) await page.keyboard.press('j')
    // A row has the focus a frame after the key.
    const focused = grid(page, name).locator('[data-index]:focus')
    await grid(page, name).locator('[data-index="4"]:focus').waitFor()
    const marked = await focused.getAttribute('aria-label')
    await arrives()
    await waits(page).click()
    await waits(page).waitFor({ state: 'detached' })
    await page.keyboard.press('j')
    await until(async () => ![null, marked].includes(await focused.getAttribute('aria-label')), 'the next row')
    await page.keyboard.press('k')
    await until(async () => (await focused.getAttribute('aria-label')) === marked, `the keys to go on from ${marked}`)
  })
}

test('a row that moves on to the next page is in the list while that page is being read', async (t) => {
  const page = await browse(t, { as: 'OWNER', at: `${org}/agents` })
  await rows(page, 'Agents').first().waitFor()
  await goesTo(page, 'Agents', 400)
  await page.mouse.move(5, 5)
  // From now on its pages are the largest ones, whenever they are read.
  await newAgent()
  await waits(page).click()
  await waits(page).waitFor({ state: 'detached' })
  const before = await top(page, 'Agents')
  const [held, release] = deferred()
  let isAsked = false
  await page.route('**/graphql', async (route) => {
    const { operationName, variables } = route.request().postDataJSON()
    if (operationName === 'Agents' && variables.after) {
      isAsked = true
      await held
    }
    await route.continue()
  })
  await newAgent()
  await until(() => isAsked, 'the second page to be asked for')
  await page.evaluate(() => new Promise((painted) => requestAnimationFrame(() => requestAnimationFrame(painted))))
  assert.deepEqual(await top(page, 'Agents'), before)
  release()
  await waits(page).waitFor()
  assert.deepEqual(await top(page, 'Agents'), before)
})

test('what is open beside the list stays open while others arrive and the list moves', async (t) => {
  const page = await browse(t, { as: 'OWNER', at: `${org}/approvals?sort=EXPIRES` })
  await rows(page, 'Approvals').nth(3).click()
  const opened = await page.getByRole('complementary').getAttribute('aria-label')
  const address = page.url()
  const open = grid(page, 'Approvals').locator('[aria-selected=true]')
  const title = await open.getAttribute('aria-label')
  await page.mouse.move(5, 5)
  await asks('do execute Wipe the floor {"command": "rm -rf floor"}')
  await waits(page).click()
  await waits(page).waitFor({ state: 'detached' })
  assert.equal(page.url(), address)
  assert.equal(await page.getByRole('complementary').getAttribute('aria-label'), opened)
  assert.equal(await open.getAttribute('aria-label'), title)
})

test('at the top of a list in which no one works, what arrives stands there at once', async (t) => {
  const page = await browse(t, { as: 'OWNER', at: `${org}/conversations` })
  await rows(page, 'Conversations').first().waitFor()
  await page.mouse.move(5, 5)
  const id = await begins('The newest of all')
  const rename = 'mutation($org: Id!, $id: Id!) { updateConversation(orgId: $org, id: $id, input: { title: "Newest" }) { id } }'
  await api(rename, { id })
  await grid(page, 'Conversations').getByRole('row', { name: /^Newest/ }).waitFor()
  assert.equal(await waits(page).count(), 0)
})

test('members come in pages, with few of them in the page', async (t) => {
  const page = await browse(t, { as: 'OWNER', at: `${org}/members` })
  await rows(page, 'Members').first().waitFor()
  await page.getByText('1–200 of 1,105').waitFor()
  assert.ok((await rows(page, 'Members').count()) <= FEW)
  await page.getByRole('button', { name: 'Next page' }).click()
  await page.getByText('201–400 of 1,105').waitFor()
  await goesTo(page, 'Members', 199)
  const before = await top(page, 'Members')
  await page.goBack()
  await page.getByText('1–200 of 1,105').waitFor()
  assert.notDeepEqual(await top(page, 'Members'), before)
})

test('the audit log comes in pages; the first one lives, and one further back holds still', async (t) => {
  const rename = (n) => `a${n}: updateConversation(orgId: $org, id: $id, input: { title: "Title ${n}" }) { id }`
  for (let round = 0; round < 10; round += 1) {
    const edits = Array.from({ length: 25 }, (_, n) => rename(round * 25 + n)).join(' ')
    await api(`mutation($org: Id!, $id: Id!) { ${edits} }`, { id: world.conversation })
  }
  const page = await browse(t, { as: 'OWNER', at: `${org}/audit` })
  await rows(page, 'Audit log').first().waitFor()
  await page.getByText(/^1–100 of /).waitFor()
  assert.ok((await rows(page, 'Audit log').count()) <= FEW)
  await page.getByRole('button', { name: 'Next page' }).click()
  await page.getByText(/^101–200 of /).waitFor()
  await grid(page, 'Audit log').evaluate((scroller) => scroller.scrollBy(0, 1_000))
  await page.mouse.move(5, 5)
  await page.waitForTimeout(500)
  const before = await top(page, 'Audit log')
  await begins('One more line')
  await page.waitForTimeout(1_500)
  assert.deepEqual(await top(page, 'Audit log'), before)
})

/** A page of the service, and some more. */
const MANY = 210
// A token may neither invite users nor issue tokens.
const asOwner = (mutation) => apiAs('OWNER', mutation)
const numbered = (n) => `zz-${String(n).padStart(3, '0')}`
/** Lists in numbered pages: how a record of each is made, and what it is called. */
const PAGED = [
  { name: 'Skills', at: 'skills', make: (n) => `createSkill(orgId: $org, input: { name: "${numbered(n)}", content: "" }) { id }` },
  { name: 'Credentials', at: 'credentials', make: (n) => `createCredential(orgId: $org, input: { name: "${numbered(n)}", kind: "api-key", fields: [] }) { id }` },
  { name: 'MCP servers', at: 'mcp-servers', make: (n) => `createMcpServer(orgId: $org, input: { name: "${numbered(n)}", transport: HTTP, url: "https://tools.example.com" }) { id }` },
  { name: 'Service tokens', at: 'tokens', call: asOwner, make: (n) => `createServiceToken(orgId: $org, input: { name: "${numbered(n)}", permissions: ["agent.view"] }) { id }` },
  {
    name: 'Invitations', at: 'members?tab=invitations', call: asOwner, titled: (n) => `${numbered(n)}@example.org`, newestFirst: true,
    make: (n) => `inviteMember(orgId: $org, input: { email: "${numbered(n)}@example.org", role: VIEWER }) { id }`,
  },
]

for (const { name, at, make, call = api, titled = numbered, newestFirst = false } of PAGED) {
  test(`${name}: a record after the first page is found by paging, and opens by its address`, async (t) => {
    const ids = []
    for (let from = 0; from < MANY; from += 30) {
      const fields = Array.from({ length: 30 }, (_, n) => `a${from + n}: ${make(from + n)}`).join(' ')
      const made = await call(`mutation($org: Id!) { ${fields} }`)
      ids.push(...Object.values(made).map(({ id }) => id))
    }
    const far = newestFirst ? 0 : MANY - 1
    const page = await browse(t, { as: 'OWNER', at: `${org}/${at}` })
    const last = page.getByRole('row', { name: titled(far) })
    const open = page.getByRole('complementary', { name: titled(far) })
    await rows(page, name).first().waitFor()
    await page.getByText(/^1–200 of 21\d$/).waitFor()
    assert.ok((await rows(page, name).count()) <= FEW, 'few rows are in the page')
    await page.getByRole('button', { name: 'Next page' }).click()
    await page.getByText(/^201–21\d of 21\d$/).waitFor()
    await last.click()
    await open.waitFor()

    await page.goto(`${world.base}${org}/${at}${at.includes('?') ? '&' : '?'}peek=${ids[far]}`)
    await open.waitFor()
    await page.getByText(/^1–200 of 21\d$/).waitFor()
  })
}
