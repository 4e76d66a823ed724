// The palette has what can be done on the page, and with what is open on it; and opens every kind of record.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { apart, asks, begins, escapes, holdsBack, hops, opens as goesTo, record, row } from './acts.mjs'
import { records } from './pages.mjs'
import { api, browse, until, world } from './stage.mjs'

const org = `/o/${world.org}`
const palette = (page) => page.getByRole('dialog', { name: 'Find anything' })
const options = (page) => palette(page).getByRole('option')

const { members, invitations } = await api(
  `query($org: Id!) {
    members(orgId: $org, page: 1, limit: 10, search: "Otto") { data { userId } }
    invitations(orgId: $org, page: 1, limit: 10) { data { id email } }
  }`,
)
const otto = members.data[0].userId
const guest = invitations.data.find(({ email }) => email === 'guest@example.org').id
const conversation = await begins('How are the beans?')

/** What each page offers; `refused` to a viewer. Who may not see a page at all is not offered anything. */
const TABLE = [
  { at: '/agents', refused: ['New agent'] },
  { at: '/agents?tab=images', refused: ['New image'] },
  { at: `/agents?tab=images&peek=${records.image}`, refused: ['New image', 'Archive the image'] },
  { at: `/agents/${world.agent}`, refused: ['Pause the agent', 'Stop the agent', 'Talk to the agent', 'Change the picture', 'Delete the agent'] },
  { at: '/servers', refused: ['New server'] },
  { at: `/servers/${records.server}`, refused: ['New token for the server', 'Delete the server'] },
  { at: `/channels?peek=${records.channel}`, refused: ['New channel', 'Delete the channel'] },
  { at: `/credentials?peek=${records.credential}`, refused: ['New credential', 'Archive the credential'] },
  { at: `/mcp-servers?peek=${records.mcpServer}`, refused: ['New MCP server', 'Archive the MCP server'] },
  { at: `/skills?peek=${records.skill}`, refused: ['New skill', 'Archive the skill'] },
  { at: `/members?peek=${otto}`, refused: ['Invite a member', 'Remove the member'] },
  { at: `/members?tab=invitations&peek=${guest}`, refused: ['Send the invitation again', 'Revoke the invitation'] },
  { at: `/tokens?peek=${records.token}`, unseen: true, refused: ['New secret for the token', 'Revoke the token'] },
  { at: '/audit', unseen: true, refused: ['Export the audit log…'] },
  { at: `/conversations/${conversation}`, free: ['Watch'], refused: ['Edit the subject', 'Resolve', 'Archive', 'Take over from the agent'] },
]
const routeOf = (at) => at.split('?')[0].replace(/\d+/, '$id')
const PAGES = apart(TABLE.map((page) => ({ ...page, route: routeOf(page.at), at: org + page.at })))

/** Opens the palette, once these actions are in it; answers the lines that it shows. */
async function opens(page, labels) {
  await page.getByRole('heading').first().waitFor()
  await page.keyboard.press('Control+k')
  await palette(page).waitFor()
  let lines
  const hasAll = async () => {
    lines = (await options(page).allInnerTexts()).map((text) => text.split('\n').map((part) => part.trim()))
    return labels.every((label) => lines.some(([name]) => name === label))
  }
  await until(hasAll, `${labels.join(', ')} at ${page.url()}`).catch((error) => {
    throw new Error(`${error.message}; there is ${lines.map(([name]) => name).join(', ')}`)
  })
  return (label) => lines.find(([name]) => name === label)
}

/** Types words into the palette, goes down to the line of this name, and presses Enter. */
async function chooses(page, words, name) {
  await page.keyboard.press('Control+k')
  await palette(page).getByRole('combobox').fill(words)
  const option = options(page).filter({ hasText: name }).first()
  await option.waitFor()
  for (let n = 0; n < 20 && (await option.getAttribute('aria-selected')) !== 'true'; n += 1) await page.keyboard.press('ArrowDown')
  assert.equal(await option.getAttribute('aria-selected'), 'true', `${name} is reached`)
  await page.keyboard.press('Enter')
  await palette(page).waitFor({ state: 'detached' })
}

test('a person who may do everything is offered all that a page can do', async (t) => {
  const page = await browse(t, { as: 'OWNER' })
  for (const each of PAGES) {
    const { at, free = [], refused } = each
    await goesTo(page, each)
    const line = await opens(page, [...free, ...refused])
    for (const label of refused) assert.ok(!line(label).includes('why not?'), `${label} at ${at}`)
    await escapes(page, palette(page))
  }
})

test('a viewer sees the same actions, with why they are refused', async (t) => {
  const page = await browse(t, { as: 'VIEWER' })
  for (const each of PAGES.filter(({ unseen }) => !unseen)) {
    const { at, free = [], refused } = each
    await goesTo(page, each)
    const line = await opens(page, [...free, ...refused])
    for (const label of free) assert.ok(!line(label).includes('why not?'), `${label} at ${at}`)
    for (const label of refused) assert.ok(line(label).includes('why not?'), `${label} at ${at}`)
    await escapes(page, palette(page))
  }
  await hops(page, `${org}/skills?peek=${records.skill}`)
  await page.getByRole('complementary', { name: 'tone-of-voice' }).getByText('Versions').waitFor()
  await chooses(page, 'archive skill', 'Archive the skill')
  await page.getByRole('dialog', { name: 'You may not do this' }).getByText('skill.delete').first().waitFor()
})

test('what is chosen is done: a skill is archived and back, a conversation resolved, a dialog opened', async (t) => {
  const page = await browse(t, { as: 'OWNER', at: `${org}/skills?peek=${records.skill}` })
  await page.getByRole('complementary', { name: 'tone-of-voice' }).getByText('Versions').waitFor()
  const archived = async () => (await record('skill', records.skill, 'archivedAt')).archivedAt
  await chooses(page, 'archive', 'Archive the skill')
  await until(archived, 'the archive')
  await chooses(page, 'restore the', 'Restore the skill')
  await until(async () => !(await archived()), 'the way back')

  await hops(page, `${org}/conversations/${conversation}`)
  await page.getByRole('button', { name: 'Actions for this conversation' }).waitFor()
  await chooses(page, 'resolve', 'Resolve')
  await until(async () => (await record('conversation', conversation, 'status')).status === 'RESOLVED', 'it being resolved')

  await hops(page, `${org}/servers/${records.server}`)
  await page.getByRole('button', { name: 'Delete', exact: true }).waitFor()
  await chooses(page, 'delete', 'Delete the server')
  await page.getByRole('alertdialog', { name: /^Delete/ }).waitFor()
})

test('an action is found by other words for it', async (t) => {
  const page = await browse(t, { as: 'VIEWER', at: org })
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await chooses(page, 'theme', 'Switch between light and dark')
  await page.locator('html[data-theme="dark"]').waitFor()
})

test('pages come first, sections are found by what they contain, and agents’ actions by the agent’s name', async (t) => {
  const page = await browse(t, { as: 'OWNER', at: org })
  await page.getByRole('button', { name: 'Stop all agents' }).waitFor()
  await page.keyboard.press('Control+k')
  await options(page).first().waitFor()
  assert.match(await options(page).first().innerText(), /^Overview/)
  await escapes(page, palette(page))
  await chooses(page, 'budget', 'Settings: Models and money')
  await page.waitForURL(/tab=money/)
  const { name } = await record('agent', world.agent, 'name')
  await chooses(page, `settings of ${name}`, `Settings of ${name}`)
  await page.waitForURL(new RegExp(`/agents/${world.agent}\\?tab=settings`))
  await chooses(page, `talk to ${name}`, `Talk to ${name}`)
  await page.getByRole('dialog', { name: /^Talk to/ }).waitFor()
})

test('a record of each kind is found, and open beside its list', async (t) => {
  const page = await browse(t, { as: 'OWNER', at: org })
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  for (const [words, name] of [
    ['opencode', 'OpenCode'],
    ['otto', 'Otto Operator'],
    ['guest@', 'guest@example.org'],
    ['nightly', 'nightly-report'],
    ['tone', 'tone-of-voice'],
  ]) {
    await chooses(page, words, name)
    await page.getByRole('complementary', { name }).waitFor()
  }
})

test('what is typed before the palette is there is for the palette, and no key of it for the page', async (t) => {
  await asks('do execute Grease the rails {"command": "grease"}')
  const page = await browse(t, { as: 'OPERATOR' })
  const release = await holdsBack(page, '**/palette.js')
  await page.goto(`${world.base}${org}/approvals?kind=ACTION&sort=CREATED`)
  await row(page, 'Grease the rails').waitFor()
  await page.keyboard.press('Control+k')
  // By themselves they would deny and approve.
  await page.keyboard.type('data')
  release()
  const field = palette(page).getByRole('combobox')
  await field.waitFor()
  await until(async () => (await field.inputValue()) === 'data', 'what was typed')
  await escapes(page, palette(page))
  assert.equal(await row(page, 'Grease the rails').getByRole('button', { name: 'Cancel' }).count(), 0, 'nothing is about to be sent')
})

test('what a page reads, and not its frame, is copied as a command that reads the same, and opens in the explorer', async (t) => {
  const page = await browse(t, { as: 'OWNER', at: `${org}/nowhere` })
  await opens(page, ['Switch between light and dark'])
  assert.deepEqual((await options(page).allInnerTexts()).filter((text) => /in the explorer|^Copy as/.test(text)), [])
  await page.goto(`${world.base}${org}/agents`)
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  const copied = () => page.evaluate(() => navigator.clipboard.readText())
  await page.getByRole('grid').first().waitFor()
  await chooses(page, 'graphql', 'Copy as GraphQL')
  await until(async () => (await copied()).includes('query Agents('), 'the document')
  await chooses(page, 'curl', 'Copy as curl')
  await until(async () => (await copied()).includes('curl '), 'the command')
  const said = execFileSync('sh', ['-c', await copied()], { encoding: 'utf8', env: { ...process.env, MUSTER_TOKEN: world.token } })
  const answers = said.trim().split('\n').map((line) => JSON.parse(line))
  assert.ok(answers.every(({ errors }) => errors === undefined), said)
  assert.ok(answers.some(({ data }) => data.agentFeed?.data.some(({ id }) => id === world.agent)), said)
  const [explorer] = await Promise.all([
    page.context().waitForEvent('page'),
    chooses(page, 'explorer', 'Open Agents in the explorer'),
  ])
  await until(async () => (await explorer.locator('#query').inputValue()).startsWith('query Agents('), 'the query')
  assert.equal(JSON.parse(await explorer.locator('#variables').inputValue()).orgId, world.org)
})
