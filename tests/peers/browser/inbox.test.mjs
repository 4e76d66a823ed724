import assert from 'node:assert/strict'
import { test } from 'node:test'
import { asks, call, deferred, denies, escapes, hasFocus, intercepts, listens, record, row, stepTo } from './acts.mjs'
import { api, browse, isAccessibleInBoth, shows, until, world } from './stage.mjs'

const inbox = `/o/${world.org}/approvals`

/** How an approval stands, as the service says it. */
const stands = (id) => record('approval', id, 'status outcome comment answer { options text }')

test('what waits is listed by risk, counted in the title, and decided without leaving the list', async (t) => {
  const low = await asks('do execute Build the shop {"command": "make shop"}')
  const high = await asks('do execute Clear the cache {"command": "rm -r cache"}')
  const page = await browse(t, { as: 'OPERATOR', at: inbox })
  await row(page, 'Build the shop').waitFor()
  await until(async () => /^\(\d+\)/.test(await page.title()), 'the number in the title')
  const names = await page.getByRole('row').evaluateAll((rows) => rows.map((each) => each.getAttribute('aria-label') ?? ''))
  const at = (title) => names.findIndex((name) => name.includes(title))
  assert.ok(at('Clear the cache') < at('Build the shop'), 'the riskier one stands above')

  await row(page, 'Build the shop').click()
  const peek = page.getByRole('complementary', { name: 'Build the shop' })
  await peek.getByText('make shop').first().waitFor()
  await shows(page, 'approvals-light')
  await page.keyboard.press('a')
  await row(page, 'Build the shop').getByRole('button', { name: 'Cancel' }).waitFor()
  assert.equal((await stands(low.approval)).status, 'PENDING', 'nothing is sent within five seconds')
  await until(async () => (await stands(low.approval)).outcome === 'APPROVED', 'the approval')
  await row(page, 'Build the shop').getByText('Approved by you').waitFor()
  assert.equal((await stands(high.approval)).status, 'PENDING')
})

test('approvals are found by words, and those that one press decides are decided together', async (t) => {
  const asked = [
    await asks('do execute Splice the mooring line {"command": "splice"}'),
    await asks('do execute Whip the mooring line {"command": "whip"}'),
  ]
  const risky = await asks('do execute Burn the mooring line {"command": "rm -r line"}')
  const page = await browse(t, { as: 'OPERATOR', at: inbox })
  await page.getByLabel('Search approvals').fill('MOORING line')
  await page.getByText('3 found').waitFor()
  await page.getByRole('button', { name: 'Decide several…' }).click()
  const dialog = page.getByRole('dialog', { name: 'Decide several actions' })
  assert.equal(await dialog.getByText('Burn the mooring line').count(), 0, 'what is risky is decided by itself')
  await dialog.getByRole('checkbox', { name: 'All' }).check()
  await dialog.getByRole('button', { name: 'Decide 2' }).click()
  for (const { approval } of asked) await until(async () => (await stands(approval)).outcome === 'APPROVED', 'the approval')
  assert.equal((await stands(risky.approval)).status, 'PENDING')
  await page.getByRole('link', { name: /^Alerts/ }).click()
  await page.waitForURL(/tab=alerts/)
  await denies(risky.approval)
})

test('what another person decides stays in its place, also under the pointer', async (t) => {
  const asked = await asks('do execute Coil the ropes {"command": "coil"}')
  await asks('do execute Wash the deck {"command": "wash"}')
  const page = await browse(t, { as: 'OPERATOR', at: inbox })
  await row(page, 'Coil the ropes').hover()
  await denies(asked.approval)
  await row(page, 'Coil the ropes').getByText(/^Denied by/).waitFor()
  await page.getByRole('button', { name: 'Clear 1 decided' }).waitFor()
})

test('a decision can be cancelled before it is sent', async (t) => {
  const asked = await asks('do execute Sweep the quay {"command": "sweep"}')
  const page = await browse(t, { as: 'OPERATOR', at: inbox })
  await row(page, 'Sweep the quay').click()
  await page.getByRole('button', { name: 'Deny' }).click()
  await row(page, 'Sweep the quay').getByRole('button', { name: 'Cancel' }).click()
  // What is decided afterwards is sent after it: a denial that was still under way would have come first.
  await row(page, 'Sweep the quay').click()
  await page.getByRole('complementary', { name: 'Sweep the quay' }).getByRole('button', { name: 'Approve' }).click()
  await until(async () => (await stands(asked.approval)).status !== 'PENDING', 'a decision')
  assert.equal((await stands(asked.approval)).outcome, 'APPROVED')
})

/** As long as keys decide nothing else after a decision, and a little more. */
const rested = (page) => page.waitForTimeout(800)

test('a key that is tapped three times decides one approval, and Z takes back all that count down', async (t) => {
  const names = ['Coil the hawser', 'Grease the capstan', 'Rig the boom']
  const asked = []
  for (const name of names) {
    asked.push(await asks(`do execute ${name} {"command": "go"}`))
    await assigns(asked.at(-1).approval)
  }
  const page = await browse(t, { as: 'OPERATOR', at: `${inbox}?mine=true&sort=CREATED` })
  const cancels = page.getByRole('button', { name: 'Cancel', exact: true })
  await row(page, 'Rig the boom').focus()
  for (let taps = 0; taps < 3; taps += 1) await page.keyboard.press('a', { delay: 10 })
  await cancels.first().waitFor()
  assert.equal(await cancels.count(), 1, 'the others are not decided')
  await rested(page)
  await page.keyboard.press('a')
  await until(async () => (await cancels.count()) === 2, 'the second decision')
  await page.keyboard.press('z')
  await until(async () => (await cancels.count()) === 0, 'both to be taken back')
  // What is decided afterwards is sent after them.
  await rested(page)
  await row(page, 'Coil the hawser').focus()
  await page.keyboard.press('d')
  await until(async () => (await stands(asked[0].approval)).outcome === 'DENIED', 'the denial')
  for (const { approval } of asked.slice(1)) {
    assert.equal((await stands(approval)).status, 'PENDING')
    // Other tests find no trace of it.
    await denies(approval)
  }
})

test('what deletes is held to be approved, however low its risk', async (t) => {
  const asked = await asks('do delete Throw out the old charts {"path": "charts"}')
  const page = await browse(t, { as: 'OPERATOR', at: `${inbox}?peek=${asked.approval}` })
  await page.getByRole('button', { name: 'Hold to approve' }).waitFor()
  assert.equal((await stands(asked.approval)).status, 'PENDING')
  await denies(asked.approval)
})

test('Z cancels what was decided last, though the keys have moved on', async (t) => {
  const asked = await asks('do execute Air the sails {"command": "air"}')
  const later = await asks('do execute Fold the flags {"command": "fold"}')
  const page = await browse(t, { as: 'OPERATOR', at: `${inbox}?peek=${asked.approval}` })
  const approve = (name) => page.getByRole('complementary', { name }).getByRole('button', { name: 'Approve' })
  const cancel = row(page, 'Air the sails').getByRole('button', { name: 'Cancel' })
  await approve('Air the sails').waitFor()
  await page.keyboard.press('a')
  await cancel.waitFor()
  await page.keyboard.press('z')
  await cancel.waitFor({ state: 'detached' })
  // What is decided afterwards is sent after it: an approval that was still under way would have come first.
  await row(page, 'Fold the flags').click()
  await approve('Fold the flags').waitFor()
  await rested(page)
  await page.keyboard.press('d')
  await until(async () => (await stands(later.approval)).outcome === 'DENIED', 'the denial')
  assert.equal((await stands(asked.approval)).status, 'PENDING')
})

test('on its own page, too, Z cancels a decision', async (t) => {
  const asked = await asks('do execute Dry the nets {"command": "dry"}')
  const page = await browse(t, { as: 'OPERATOR', at: `${inbox}/${asked.approval}` })
  await page.getByRole('button', { name: 'Deny' }).waitFor()
  await page.keyboard.press('d')
  const cancel = page.getByRole('button', { name: 'Cancel' })
  await cancel.waitFor()
  await page.keyboard.press('z')
  await cancel.waitFor({ state: 'detached' })
  // It waits as long as the denial would have: that one would have been sent first.
  await page.getByRole('button', { name: 'Approve' }).waitFor()
  await page.keyboard.press('a')
  await until(async () => (await stands(asked.approval)).status !== 'PENDING', 'a decision')
  assert.equal((await stands(asked.approval)).outcome, 'APPROVED')
})

test('a decision that waits ends when another person signs in in another tab', async (t) => {
  const asked = await asks('do execute Sink the raft {"command": "sink"}')
  const at = `${inbox}?peek=${asked.approval}`
  const page = await browse(t, { as: 'ADMIN', at })
  const other = await page.context().newPage()
  await other.goto(`${world.base}/sign-in`)
  const { email, password } = world.people.OPERATOR
  await other.getByLabel('E-mail address').fill(email)
  await other.getByLabel('Password', { exact: true }).fill(password)
  await page.getByRole('button', { name: 'Approve' }).click()
  await page.getByRole('button', { name: 'Cancel' }).first().waitFor()
  await other.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor()
  // This waits as long: had the other been sent, it would have been before.
  await other.goto(world.base + at)
  await other.getByRole('button', { name: 'Deny' }).click()
  const { outcome } = await until(async () => {
    const now = await stands(asked.approval)
    return now.outcome && now
  }, 'the decision')
  assert.equal(outcome, 'DENIED')
})

test('what is risky is approved only by holding, with the keyboard too', async (t) => {
  const asked = await asks('do execute Empty the bin {"command": "rm -r bin"}')
  const page = await browse(t, { as: 'ADMIN', at: `${inbox}?peek=${asked.approval}` })
  const button = page.getByRole('button', { name: 'Hold to approve' })
  await button.click()
  await page.waitForTimeout(1_500)
  assert.equal((await stands(asked.approval)).status, 'PENDING', 'a click is not enough')
  await page.getByText(/^Nothing happened yet: hold the button/).last().waitFor()
  await page.keyboard.press('a')
  await until(() => hasFocus(button), 'the focus')
  await page.keyboard.down('Enter')
  await until(async () => (await stands(asked.approval)).outcome === 'APPROVED', 'the approval')
  await page.keyboard.up('Enter')
})

test('what was chosen for a question is there again when its answer is cancelled, and is sent with words', async (t) => {
  const asked = await asks('ask Which rope? | hemp | wire')
  const page = await browse(t, { as: 'OPERATOR', at: `${inbox}/${asked.approval}` })
  const wire = page.getByRole('radio', { name: 'wire' })
  await wire.check()
  await page.getByRole('button', { name: 'Send answer' }).click()
  await page.getByRole('button', { name: 'Cancel' }).click()
  await wire.waitFor()
  assert.ok(await wire.isChecked())
  // Beside the list, too.
  await page.goto(`${world.base}${inbox}?peek=${asked.approval}`)
  await wire.check()
  await page.getByRole('textbox', { name: /own words/i }).fill('a strong one')
  await page.getByRole('button', { name: 'Send answer' }).click()
  await until(async () => (await stands(asked.approval)).outcome === 'ANSWERED', 'the answer')
  assert.equal((await stands(asked.approval)).answer.text, 'a strong one')
  // On its own page the end is said, and the way goes on.
  await page.goto(`${world.base}${inbox}/${asked.approval}`)
  await page.getByRole('heading', { level: 1, name: 'Which rope?' }).waitFor()
  await page.getByText('The agent asked this.').waitFor()
  await page.getByText(/^(Next:|Nothing else waits for you\.)/).waitFor()
})

/** Begins words for the agent in an open approval, by keys, and leaves their field. */
async function beginsWords(peek, text) {
  const { keyboard } = peek.page()
  await peek.getByRole('button', { name: 'Deny' }).waitFor()
  await keyboard.press('c')
  const words = peek.getByRole('textbox', { name: /comment for the agent/i })
  await words.waitFor()
  await until(() => hasFocus(words), 'the focus to be in the words')
  await words.fill(text)
  await keyboard.press('Escape')
}

/** Denied, with these words. */
async function isDenied(approval, text) {
  await until(async () => (await stands(approval)).outcome === 'DENIED', 'the denial')
  assert.equal((await stands(approval)).answer.text, text)
}

test('words that were begun go along with a denial by key, beside the list and in it', async (t) => {
  const paints = await asks('do execute Paint the boat {"command": "paint"}')
  const page = await browse(t, { as: 'OPERATOR', at: `${inbox}?peek=${paints.approval}` })
  await beginsWords(page.getByRole('complementary', { name: 'Paint the boat' }), 'not in this weather')
  await page.keyboard.press('d')
  await isDenied(paints.approval, 'not in this weather')

  const asked = await asks('do execute Tar the planks {"command": "tar"}')
  await page.goto(`${world.base}${inbox}?conversation=${asked.conversation}`)
  const peek = page.getByRole('complementary', { name: 'Tar the planks' })
  // The row is marked by J: opening it does not mark it.
  await stepTo(page, row(page, 'Tar the planks'), 'j')
  await page.keyboard.press('Enter')
  await beginsWords(peek, 'wait for the sun')
  await page.keyboard.press('Escape')
  await peek.waitFor({ state: 'detached' })
  await page.keyboard.press('d')
  await isDenied(asked.approval, 'wait for the sun')
})

test('what was opened stays marked when it is closed: keys act on it', async (t) => {
  const risky = await asks('do execute Burn the pier {"command": "rm -r pier"}')
  const asked = await asks('do execute Tar the hull {"command": "tar"}')
  const page = await browse(t, { as: 'OPERATOR', at: inbox })
  await row(page, 'Tar the hull').click()
  const peek = page.getByRole('complementary', { name: 'Tar the hull' })
  await peek.getByText('tar', { exact: true }).first().waitFor()
  await page.keyboard.press('Escape')
  await peek.waitFor({ state: 'detached' })
  await page.keyboard.press('d')
  await until(async () => (await stands(asked.approval)).outcome === 'DENIED', 'the denial')
  assert.equal((await stands(risky.approval)).status, 'PENDING')
})

test('the keys of what is open work, though the list does not show it', async (t) => {
  const asked = await asks('do execute Bail the dinghy {"command": "bail"}')
  const page = await browse(t, { as: 'OPERATOR', at: `${inbox}?kind=COST_GUARD&peek=${asked.approval}` })
  await page.getByRole('complementary', { name: 'Bail the dinghy' }).getByRole('button', { name: 'Deny' }).waitFor()
  await page.getByRole('heading', { name: 'Nothing matches' }).waitFor()
  await page.keyboard.press('d')
  await until(async () => (await stands(asked.approval)).outcome === 'DENIED', 'the denial')
})

test('an approval is assigned, snoozed, and found again', async (t) => {
  const asked = await asks('do execute Count the crates {"command": "count"}')
  const page = await browse(t, { as: 'ADMIN', at: `${inbox}?peek=${asked.approval}` })
  await page.getByRole('button', { name: 'Assign to me' }).click()
  await page.getByText('Assigned to you').waitFor()
  await page.goto(`${world.base}${inbox}?mine=true`)
  await row(page, 'Count the crates').waitFor()
  await row(page, 'Count the crates').click()
  await page.keyboard.press('s')
  await page.getByText(/^Hidden/).first().waitFor()
  await page.goto(world.base + inbox)
  await page.getByRole('heading', { name: 'Approvals' }).waitFor()
  await until(async () => (await row(page, 'Count the crates').count()) === 0, 'it to be hidden')
  await page.goto(`${world.base}${inbox}?snoozed=true`)
  await row(page, 'Count the crates').waitFor()
})

test('a person who may not decide sees why, and the service refuses the same call', async (t) => {
  const asked = await asks('do execute Move the buoy {"command": "move"}')
  const page = await browse(t, { as: 'VIEWER', at: `${inbox}?peek=${asked.approval}` })
  const approve = page.getByRole('button', { name: 'Approve' })
  await approve.waitFor()
  assert.equal(await approve.getAttribute('aria-disabled'), 'true')
  await approve.click({ force: true })
  await page.getByRole('dialog', { name: /may not/i }).getByText(/approval\.resolve/).first().waitFor()
  const approves = 'mutation($o: Id!, $id: Id!) { answerApproval(orgId: $o, id: $id, input: { options: ["approve"] }) { id } }'
  assert.deepEqual((await call(page, approves, { id: asked.approval })).codes, ['PERMISSION_DENIED'])
  assert.equal((await stands(asked.approval)).status, 'PENDING')
  // The inbox opens for this person also when nothing matches.
  await page.goto(`${world.base}${inbox}?kind=COST_GUARD`)
  await page.getByRole('heading', { name: 'Nothing matches' }).waitFor()
  await isAccessibleInBoth(page, 'with nothing that matches')
})

test('what is asked while one looks is read out: how many, in one sentence', async (t) => {
  await asks('do execute Oil the winch {"command": "oil"}')
  const page = await browse(t, { as: 'OPERATOR' })
  let news = 0
  page.on('websocket', (socket) =>
    socket.on('framereceived', ({ payload }) => {
      if (/"APPROVAL"/.test(payload) && /"CREATED"/.test(payload)) news += 1
    }),
  )
  // While it is held, what is asked does not get into the list.
  let held = null
  await intercepts(page, 'ApprovalsInbox', async (route) => {
    await held
    await route.continue()
  })
  await page.goto(`${world.base}${inbox}?kind=ACTION&sort=CREATED`)
  await row(page, 'Oil the winch').waitFor()
  const heard = await listens(page)
  const counts = async () => (await heard()).flatMap((text) => /^(\d+) new approvals?$/.exec(text)?.[1] ?? []).map(Number)
  let release
  ;[held, release] = deferred()
  await asks('ask Is the winch loud?')
  for (const name of ['Fill the tank', 'Read the log']) await asks(`do execute ${name} {"command": "go"}`)
  await until(() => news >= 3, 'the news of them')
  release()
  await until(async () => (await counts()).length > 0, 'the first sentence')
  await asks('do execute Trim the lamp {"command": "go"}')
  await until(async () => (await counts()).length > 1, 'the second one')
  assert.deepEqual(await counts(), [2, 1], 'of those that the list shows')
})

test('J draws its row first and the approval after that, and no key decides what is not drawn yet', async (t) => {
  const older = await asks('do execute Tar the hull {"command": "tar"}')
  const newer = await asks('do execute Scrub the hull {"command": "scrub"}')
  const page = await browse(t, { as: 'OPERATOR', at: `${inbox}?kind=ACTION&sort=CREATED` })
  await row(page, 'Scrub the hull').click()
  const peek = (name) => page.getByRole('complementary', { name })
  await peek('Scrub the hull').getByText('scrub', { exact: true }).first().waitFor()
  const seen = await page.evaluate(async () => {
    const press = (key) =>
      document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }))
    const painted = new Promise((resolve) => {
      requestAnimationFrame(() => resolve({
        row: document.querySelector('[role=row][aria-selected=true]').getAttribute('aria-label'),
        beside: document.querySelector('aside').getAttribute('aria-label'),
      }))
    })
    press('j')
    // What a key changes at once is drawn before anything else happens.
    await null
    press('a')
    return painted
  })
  assert.match(seen.row, /^Tar the hull/, 'the frame that the key is painted in has the row')
  assert.equal(seen.beside, 'Scrub the hull', 'and not yet what is open')
  await peek('Tar the hull').getByText('tar', { exact: true }).first().waitFor()
  await page.waitForURL(new RegExp(`peek=${older.approval}`))
  for (const name of ['Tar the hull', 'Scrub the hull'])
    assert.equal(await row(page, name).getByRole('button', { name: 'Cancel' }).count(), 0, `${name} is not decided`)
  await page.keyboard.press('a')
  await row(page, 'Tar the hull').getByRole('button', { name: 'Cancel' }).click()
  assert.equal((await stands(newer.approval)).status, 'PENDING')
})

/** Gives the decision about an approval to Otto Operator. */
async function assigns(approval) {
  const { members } = await api('query($org: Id!) { members(orgId: $org, page: 1, limit: 10, search: "Otto") { data { userId } } }')
  const [{ userId }] = members.data
  await api('mutation($org: Id!, $id: Id!, $userId: Id) { assignApproval(orgId: $org, id: $id, userId: $userId) { id } }', {
    id: approval,
    userId,
  })
}

test('the focus goes to the next row that waits, or to the one before, and in the end to the title', async (t) => {
  const asked = []
  for (const name of ['Bend the jib', 'Reef the main', 'Furl the kite', 'Hoist the spanker']) {
    asked.push(await asks(`do execute ${name} {"command": "go"}`))
    await assigns(asked.at(-1).approval)
  }
  // The newest stands above.
  const page = await browse(t, { as: 'OPERATOR', at: `${inbox}?mine=true&sort=CREATED` })
  const comesTo = (name) => until(() => hasFocus(row(page, name)), `the focus to be on ${name}`)
  await row(page, 'Hoist the spanker').waitFor()
  await row(page, 'Reef the main').focus()
  await page.keyboard.press('d')
  await comesTo('Bend the jib')
  await rested(page)
  await page.keyboard.press('d')
  await comesTo('Furl the kite')
  // Also while one is open, beside the list.
  await page.keyboard.press('Enter')
  await page.getByRole('complementary', { name: 'Furl the kite' }).getByRole('button', { name: 'Deny' }).waitFor()
  await rested(page)
  await page.keyboard.press('d')
  await comesTo('Hoist the spanker')
  const peek = page.getByRole('complementary', { name: 'Hoist the spanker' })
  await peek.getByRole('button', { name: 'Deny' }).waitFor()
  await escapes(page, peek)
  for (const name of ['Bend the jib', 'Reef the main', 'Furl the kite']) await row(page, name).getByText('Denied by you').waitFor()
  await page.keyboard.press('s')
  const title = page.getByRole('heading', { name: 'Approvals', exact: true })
  await until(() => hasFocus(title), 'the focus to be on the title')
  await row(page, 'Hoist the spanker').waitFor({ state: 'detached' })
  assert.ok(await hasFocus(title))
  assert.equal((await stands(asked.at(-1).approval)).status, 'PENDING')
})

test('keys act on the row that has the focus, and never on one that waits while the order holds still', async (t) => {
  const asked = await asks('do execute Gild the bell {"command": "gild"}')
  await assigns(asked.approval)
  const page = await browse(t, { as: 'OPERATOR', at: `${inbox}?mine=true&sort=CREATED` })
  await row(page, 'Gild the bell').focus()
  const other = await asks('do execute Stow the gaff {"command": "stow"}')
  await assigns(other.approval)
  const refresh = page.getByRole('button', { name: /refresh the order/ })
  await refresh.waitFor()
  await page.keyboard.press('d')
  await row(page, 'Gild the bell').getByRole('button', { name: 'Cancel' }).waitFor()
  // Of the rows that are drawn, no other one waits for a decision.
  await page.keyboard.press('d')
  await refresh.click()
  await row(page, 'Stow the gaff').waitFor()
  assert.equal(await row(page, 'Stow the gaff').getByRole('button', { name: 'Cancel' }).count(), 0)
  await until(async () => (await stands(asked.approval)).outcome === 'DENIED', 'the denial')
  assert.equal((await stands(other.approval)).status, 'PENDING')
})

test('what waits and what is decided do not mix when one changes between them', async (t) => {
  const ended = await asks('do execute Lash the boom {"command": "lash"}')
  await asks('do execute Pump the bilge {"command": "rm -r bilge"}')
  await denies(ended.approval)
  const page = await browse(t, { as: 'OPERATOR', at: inbox })
  await row(page, 'Pump the bilge').waitFor()
  const decided = page.getByRole('button', { name: 'Decided', exact: true })
  await decided.click()
  await row(page, 'Lash the boom').waitFor()
  await decided.click()
  await row(page, 'Pump the bilge').waitFor()
  assert.equal(await row(page, 'Lash the boom').count(), 0, 'what is decided has left with its list')
  assert.equal(await page.getByRole('button', { name: /^Clear \d+ decided$/ }).count(), 0)
})

test('what cannot be read says so, and can be tried again', async (t) => {
  const page = await browse(t, { as: 'ADMIN', fails: ['/graphql'] })
  let broken = true
  await intercepts(page, 'ApprovalsInbox', (route) => (broken ? route.abort() : route.continue()))
  await page.goto(world.base + inbox)
  await page.getByRole('heading', { name: 'This could not be shown' }).waitFor()
  broken = false
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByRole('grid', { name: 'Approvals' }).waitFor()
})
