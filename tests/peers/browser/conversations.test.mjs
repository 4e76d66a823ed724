import assert from 'node:assert/strict'
import { test } from 'node:test'
import { asks, begins, call, downloads, hasFocus, intercepts, listens, record, rests, row, says, thread } from './acts.mjs'
import { browse, isAccessible, shows, until, world } from './stage.mjs'

const list = `/o/${world.org}/conversations`
const at = (id, search = '') => `${list}/${id}${search}`
const write = async (page, text) => {
  await page.getByRole('textbox', { name: 'Message' }).fill(text)
  await page.keyboard.press('Enter')
}
const said = (page, text) => page.getByRole('article').getByText(text).first()

test('a conversation is begun, written in, and answered while one looks', async (t) => {
  const page = await browse(t, { as: 'OPERATOR', at: list })
  await page.getByRole('button', { name: 'New', exact: true }).click()
  const dialog = page.getByRole('dialog', { name: 'New conversation' })
  const agent = await record('agent', world.agent, 'name')
  await dialog.getByLabel('Agent').fill(agent.name)
  await page.getByRole('option', { name: agent.name }).first().click()
  await dialog.getByLabel('Subject').fill('About boats')
  await dialog.getByRole('button', { name: 'Start' }).click()
  await page.waitForURL(/conversations\/\d+/)
  await page.getByRole('heading', { name: 'Nothing has been said yet' }).waitFor()
  await isAccessible(page, 'in an empty conversation')
  await write(page, 'How many boats are out?')
  await said(page, 'How many boats are out?').waitFor()
  await page.getByRole('article', { name: /^(?!You)/ }).getByText(/How many boats are out/).first().waitFor()
  await shows(page, 'conversation-light')
})

test('Enter sends the first message, too', async (t) => {
  const page = await browse(t, { as: 'OPERATOR', at: `/o/${world.org}/agents/${world.agent}` })
  await page.getByRole('button', { name: 'New conversation' }).click()
  const box = page.getByRole('dialog').getByLabel('Message')
  await box.fill('Which boats')
  await box.press('Shift+Enter')
  await box.pressSequentially('are out?')
  await box.press('Enter')
  await page.waitForURL(/conversations\/\d+/)
  await said(page, /Which boats\s*are out\?/).waitFor()
})

test('Shift and Enter begin a line, Enter sends; the agent is stopped while it works', async (t) => {
  const conversation = await begins('hello')
  const page = await browse(t, { as: 'OPERATOR', at: at(conversation) })
  const box = page.getByRole('textbox', { name: 'Message' })
  await box.fill('one')
  await page.keyboard.press('Shift+Enter')
  await box.pressSequentially('two')
  assert.equal(await box.inputValue(), 'one\ntwo')
  await page.keyboard.press('Enter')
  await until(async () => (await box.inputValue()) === '', 'the message to be sent')
  await rests(conversation)
  await write(page, 'hang')
  await page.getByText('Working').waitFor()
  await page.getByRole('button', { name: 'Stop' }).click()
  await until(async () => (await page.getByText('Working').count()) === 0, 'the turn to end')
})

test('thoughts, tools and decisions stand in the thread, folded, and are decided there', async (t) => {
  const conversation = await begins('think about ropes\ndo execute Splice a rope {"command": "splice"}')
  const page = await browse(t, { as: 'OPERATOR', at: at(conversation) })
  const thought = page.locator('summary').filter({ hasText: 'Thought' })
  await thought.waitFor()
  await page.getByRole('button', { name: 'Approve' }).click()
  await page.getByText('Approved by you').waitFor()
  await until(async () => (await thread(conversation)).some(({ kind }) => kind === 'TOOL_RESULT'), 'the result')
  await page.locator('summary').filter({ hasText: /\d (ms|s)/ }).first().click()
  await isAccessible(page, 'with a tool unfolded')
})

test('text shows while the agent writes it, and is replaced by the message', async (t) => {
  const conversation = await begins('hello')
  const page = await browse(t, { as: 'ADMIN', at: at(conversation) })
  await page.getByRole('article').first().waitFor()
  await write(page, 'slowly 12 250')
  await page.locator('[data-streaming]').waitFor()
  await until(async () => (await page.locator('[data-streaming]').count()) === 0, 'the message', 60)
  await page.getByRole('article').last().waitFor()
})

test('what is said at the end of a thread is read out, with who said it', async (t) => {
  const conversation = await begins('hello')
  await rests(conversation)
  const page = await browse(t, { as: 'ADMIN', at: at(conversation) })
  await page.getByRole('article').last().waitFor()
  const heard = await listens(page)
  const last = async () => (await thread(conversation)).filter(({ kind }) => kind === 'TEXT').at(-1)
  await says(conversation, 'think of the moon\nThe tide turns at nine.')
  await until(async () => (await heard()).some((text) => text.includes('The tide turns at nine.')), 'the message')
  await until(async () => (await last()).role === 'ASSISTANT', 'the answer')
  await rests(conversation)
  const answer = (await last()).content.text
  await until(async () => (await heard()).some((text) => text.endsWith(answer.replaceAll(/\s+/g, ' ').trim())), 'the answer')
  assert.ok(!(await heard()).some((text) => /^(\d+ new messages\. )?\S[^:]*: of the moon/.test(text)), 'thoughts are not')
  await write(page, 'One’s own words')
  await said(page, 'One’s own words').waitFor()
  await rests(conversation)
  assert.ok(!(await heard()).some((text) => /You: /.test(text)), 'and neither is what one says oneself')
})

test('messages that arrive while a person reads further up are counted, and nothing jumps', async (t) => {
  const conversation = await begins(Array.from({ length: 40 }, (_, n) => `think of number ${n}`).join('\n'))
  await until(async () => (await thread(conversation)).length > 38, 'the thoughts')
  await rests(conversation)
  const page = await browse(t, { as: 'ADMIN', height: 500, at: at(conversation) })
  const log = page.getByRole('log')
  await until(() => log.evaluate((element) => element.scrollTop > 250), 'the end to be in view')
  await log.evaluate((element) => element.scrollTo(0, 200))
  // The page knows that one has left the end.
  await page.getByRole('button', { name: 'Newest' }).waitFor()
  /** The first message in view, and where it stands. */
  const place = () =>
    log.evaluate((element) => {
      const { top } = element.getBoundingClientRect()
      const first = [...element.querySelectorAll('[data-message]')].find((each) => each.getBoundingClientRect().bottom > top)
      return { seq: first.dataset.seq, at: first.getBoundingClientRect().top - top }
    })
  const before = await place()
  const heard = await listens(page)
  await says(conversation, 'something new')
  await page.getByRole('button', { name: /\d+ new/ }).waitFor()
  await until(async () => (await heard()).some((text) => /^\d+ new messages? below$/.test(text)), 'the number to be announced')
  assert.ok(!(await heard()).some((text) => text.includes('something new')), 'what is not in view is not read out')
  const after = await place()
  assert.ok(after.seq === before.seq && Math.abs(after.at - before.at) <= 1, JSON.stringify({ before, after }))
  await page.getByRole('button', { name: /\d+ new/ }).click()
  await said(page, 'something new').waitFor()
})

test('what one wrote does not wait once the agent has it, however late its sending is answered', async (t) => {
  const conversation = await begins('hello')
  await rests(conversation)
  const page = await browse(t, { as: 'OPERATOR' })
  // The service takes each message, and its answer comes when the agent has long begun.
  await intercepts(page, 'PostMessage', async (route) => {
    const response = await route.fetch()
    await until(async () => (await thread(conversation)).every(({ status }) => status !== 'PENDING'), 'the agent to have it')
    await page.locator('[data-streaming]').waitFor()
    await route.fulfill({ response })
  })
  await page.goto(world.base + at(conversation))
  await write(page, 'slowly 12 250')
  await page.locator('[data-streaming]').waitFor()
  await until(async () => (await page.getByText('Sending…').count()) === 0, 'the sending to be answered')
  assert.equal(await page.getByText('Waits for the agent').count(), 0, 'while the agent writes')
  await rests(conversation)
  await page.getByRole('article', { name: /^(?!You)/ }).last().waitFor()
  assert.equal(await page.getByText('Waits for the agent').count(), 0, 'when it has answered')
})

test('sending again doubles no message whose answer is lost, still under way, or too long to be kept', async (t) => {
  const conversation = await begins('hello')
  const page = await browse(t, { as: 'OPERATOR', fails: ['/graphql'] })
  // What a test does with the next posts. The others go on.
  const next = []
  await intercepts(page, 'PostMessage', (route) => (next.shift() ?? ((given) => given.continue()))(route))
  // The service takes it, and its answer is lost.
  const takes = async (route) => {
    await route.fetch()
    await route.abort()
  }
  const isUnderWay = (route) =>
    route.fulfill({
      status: 409,
      contentType: 'application/graphql-response+json',
      body: JSON.stringify({ errors: [{ message: 'Wait', extensions: { code: 'IDEMPOTENCY_IN_PROGRESS' } }] }),
    })
  const again = () => page.getByRole('button', { name: 'Send again' }).click()
  const areGone = () => until(async () => (await page.getByText(/^(Sending…|Not sent)/).count()) === 0, 'it to be accepted')
  const written = async (start) =>
    (await thread(conversation)).filter(({ role, content }) => role === 'USER' && content.text?.startsWith(start)).length
  await page.goto(world.base + at(conversation))

  next.push(takes)
  await write(page, 'only once please')
  await page.getByText(/Not sent/).waitFor()
  await again()
  await areGone()
  assert.equal(await written('only once please'), 1)

  next.push(takes, isUnderWay)
  await write(page, 'twice under way')
  await again()
  await page.getByText(/still under way/).waitFor()
  await again()
  await areGone()
  assert.equal(await written('twice under way'), 1)

  // More than 64 KiB: the service keeps no such answer, and only tells that the message is there.
  next.push(takes)
  await write(page, `very long ${'ä'.repeat(45_000)}`)
  await again()
  await areGone()
  await said(page, /^very long/).waitFor()
  assert.equal(await written('very long'), 1)
})

test('a picture is sent, shown from its bytes, and can be saved', async (t) => {
  const page = await browse(t, { as: 'OPERATOR', at: at(await begins('hello')) })
  await page.getByRole('textbox', { name: 'Message' }).waitFor()
  const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64')
  await page.locator('input[type=file]').setInputFiles({ name: 'dot.png', mimeType: 'image/png', buffer: png })
  await page.getByRole('list', { name: 'Files to send' }).getByText('dot.png').waitFor()
  await write(page, 'a picture')
  const picture = page.getByRole('img', { name: 'dot.png' })
  await picture.waitFor()
  assert.match(await picture.getAttribute('src'), /^blob:/)
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Save dot.png' }).click(),
  ])
  assert.equal(download.suggestedFilename(), 'dot.png')
})

test('editing a message that was not sent gives its file back as well', async (t) => {
  const page = await browse(t, { as: 'OPERATOR', at: at(await begins('hello')), fails: ['/graphql'] })
  await page.getByRole('textbox', { name: 'Message' }).waitFor()
  await intercepts(page, 'PostMessage', (route) => route.abort())
  const attach = (name) =>
    page.locator('input[type=file]').setInputFiles({ name, mimeType: 'text/plain', buffer: Buffer.from(name) })
  const listed = (name) => page.getByRole('list', { name: 'Files to send' }).getByText(name)
  await attach('tides.txt')
  await listed('tides.txt').waitFor()
  await write(page, 'the tides')
  await page.getByText(/Not sent/).waitFor()
  await attach('winds.txt')
  await listed('winds.txt').waitFor()
  await page.getByRole('button', { name: 'Edit', exact: true }).click()
  await listed('tides.txt').waitFor()
  assert.ok(await listed('winds.txt').isVisible(), 'what was attached since stays')
  assert.equal(await page.getByRole('textbox', { name: 'Message' }).inputValue(), 'the tides')
})

test('words are found in the conversation, and lead to their message', async (t) => {
  const conversation = await begins('the anchor is rusty')
  await says(conversation, 'the rope is fine')
  const page = await browse(t, { as: 'VIEWER', at: at(conversation) })
  await page.getByRole('article').first().waitFor()
  await page.keyboard.press('/')
  await page.getByRole('searchbox', { name: 'Words to find' }).fill('anchor')
  const hits = page.getByRole('search').getByRole('link')
  await hits.first().waitFor()
  await isAccessible(page, 'while finding')
  await hits.first().click()
  await page.waitForURL(/seq=\d+/)
})

test('what was said is found in all conversations, and leads to its message', async (t) => {
  const word = `halyard${Date.now()}`
  for (const text of ['is frayed', 'is new']) await begins(`the ${word} ${text}`)
  const page = await browse(t, { as: 'VIEWER', at: list })
  await page.getByRole('searchbox', { name: 'Search conversations' }).fill(word)
  await page.getByRole('link', { name: 'What was said' }).click()
  const row = page.getByRole('row').filter({ hasText: 'is frayed' })
  await row.first().waitFor()
  await isAccessible(page, 'with what was said')
  await row.last().click()
  await page.waitForURL(/conversations\/\d+\?.*seq=1/)
  await page.getByRole('article').filter({ hasText: 'is frayed' }).first().waitFor()
  await page.goBack()
  await page.getByRole('searchbox', { name: 'Search conversations' }).fill(`${word}s`)
  await page.getByRole('heading', { name: 'Nothing matches' }).waitFor()
})

test('a conversation is renamed, resolved and reopened', async (t) => {
  const page = await browse(t, { as: 'OPERATOR', at: at(await begins('hello')) })
  await page.getByRole('button', { name: 'Actions for this conversation' }).click()
  await page.getByRole('menuitem', { name: /Edit the subject/ }).click()
  await page.getByRole('textbox', { name: 'Subject' }).fill('Rust and ropes')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('heading', { name: 'Rust and ropes' }).waitFor()
  await page.getByRole('button', { name: 'Resolve', exact: true }).click()
  await page.getByText('Resolved').first().waitFor()
  await page.getByRole('button', { name: 'Reopen', exact: true }).click()
  await page.getByText('Open', { exact: true }).first().waitFor()
})

test('a message is quoted, and its link is copied', async (t) => {
  const conversation = await begins('the buoy is red')
  await rests(conversation)
  const page = await browse(t, { as: 'OPERATOR', at: at(conversation) })
  const message = page.getByRole('article', { name: /message 1$/ })
  await message.hover()
  const actions = message.getByRole('toolbar')
  await actions.getByRole('button', { name: 'Copy link' }).click()
  await page.getByText('Link copied').waitFor()
  await isAccessible(page, 'with the actions of a message')
  await actions.getByRole('button', { name: 'Copy link' }).press('ArrowLeft')
  await actions.getByRole('button', { name: 'Quote' }).press('Enter')
  const box = page.getByRole('textbox', { name: 'Message' })
  await until(async () => (await box.inputValue()) === '> the buoy is red\n\n', 'the quote')
  await until(() => hasFocus(box), 'the focus in the composer')
})

test('a conversation is exported to read and for programs', async (t) => {
  const conversation = await begins('the buoy is green')
  await rests(conversation)
  const page = await browse(t, { as: 'VIEWER', at: at(conversation) })
  const saved = async (name) => {
    await page.getByRole('button', { name: 'Actions for this conversation' }).click()
    return (await downloads(page, () => page.getByRole('menuitem', { name }).click())).text
  }
  assert.match(await saved('Export as Markdown'), /^# .*\n[^]*\n\nthe buoy is green\n/)
  const { messages } = JSON.parse(await saved('Export as JSON'))
  assert.equal(messages[0].content.text, 'the buoy is green')
  assert.ok(messages.length > 1, 'and what the agent said')
})

test('the list shows who waits for a decision, and filters stand in the address', async (t) => {
  const { conversation } = await asks('do execute Coil the ropes {"command": "coil"}')
  const page = await browse(t, { as: 'OPERATOR', at: list })
  await row(page, 'waits for a decision').first().waitFor()
  await page.getByRole('button', { name: 'Only', exact: true }).click()
  await page.getByRole('menuitem', { name: 'Waiting for a decision' }).click()
  await page.waitForURL(/waiting=true/)
  await page.reload()
  await row(page, 'waits for a decision').first().click()
  await page.waitForURL(/conversations\/\d+/)
  assert.ok(conversation > 0)
})

test('a person who may not write reads all, sees why, and the service refuses the same call', async (t) => {
  const page = await browse(t, { as: 'VIEWER', at: at(world.conversation, '?panel=turns') })
  await page.getByRole('article').first().waitFor()
  await page.getByRole('complementary', { name: 'About this conversation' }).getByText('Tokens').first().waitFor()
  await page.goto(world.base + at(world.conversation))
  const send = page.getByRole('button', { name: 'Send' })
  await send.waitFor()
  assert.equal(await send.getAttribute('aria-disabled'), 'true')
  await send.click({ force: true })
  await page.getByRole('dialog', { name: /may not/i }).getByText(/agent\.interact/).first().waitFor()
  const posts = 'mutation($o: Id!, $id: Id!) { postMessage(orgId: $o, conversationId: $id, input: { text: "x" }) { id } }'
  assert.deepEqual((await call(page, posts, { id: world.conversation })).codes, ['PERMISSION_DENIED'])
})
