import assert from 'node:assert/strict'
import { test } from 'node:test'
import { call, dialog, fresh, holdsBack, record, row } from './acts.mjs'
import { api, browse, isAccessible, shows, until, world } from './stage.mjs'

const org = `/o/${world.org}`
const peek = (page, name) => page.getByRole('complementary', { name })

/** Takes back what a message says. */
const undo = (page, said) =>
  page.getByRole('status').locator('> div', { hasText: said }).getByRole('button', { name: 'Undo' }).click()

/** All answers of the service to the page, as one text. */
function answersTo(page) {
  const answers = []
  page.on('response', async (response) => {
    if (response.url().includes('/graphql')) answers.push(await response.text().catch(() => ''))
  })
  page.on('websocket', (socket) => socket.on('framereceived', ({ payload }) => answers.push(String(payload))))
  return () => answers.join('\n')
}

test('a credential is made, edited, given to an agent, archived and brought back, and its value never returns', async (t) => {
  const name = fresh('Ticket system ')
  const page = await browse(t, { as: 'OWNER', at: `${org}/credentials` })
  const answers = answersTo(page)
  await page.getByRole('button', { name: 'New credential' }).first().click()
  await dialog(page).getByRole('button', { name: 'Store the credential' }).click()
  const empty = dialog(page).getByText('This can’t be empty.')
  await empty.nth(1).waitFor()
  await dialog(page).getByLabel('Name', { exact: true }).fill(name)
  await until(async () => (await empty.count()) === 1, 'the error of the filled field is gone')
  await dialog(page).getByRole('button', { name: 'Store the credential' }).click()
  assert.equal(await empty.count(), 1, 'nothing is stored without the key')
  await dialog(page).getByLabel('Key', { exact: true }).fill('sesame-open-481')
  await dialog(page).getByRole('button', { name: 'Store the credential' }).click()
  const one = peek(page, name)
  await one.getByText('stored', { exact: true }).waitFor()
  await row(page, name).waitFor()
  await shows(page, 'credentials-light')

  await one.getByRole('textbox', { name: 'Description optional', exact: true }).fill('For the help desk')
  await one.getByRole('button', { name: 'Save' }).click()
  await row(page, name).getByText('For the help desk').waitFor()
  await one.getByRole('button', { name: 'Replace' }).click()
  await dialog(page).getByLabel('Value').fill('another-secret-482')
  await dialog(page).getByRole('button', { name: 'Store' }).click()
  await dialog(page).waitFor({ state: 'detached' })

  await one.getByLabel('Assign this credential to an agent').click()
  await page.getByRole('option').first().click()
  const id = Number(new URL(page.url()).searchParams.get('peek'))
  const stored = () => record('credential', id, 'archivedAt agents { id } fields { label hasValue }')
  await until(async () => (await stored()).agents.length === 1, 'the assignment')
  await undo(page, 'has this credential')
  await until(async () => (await stored()).agents.length === 0, 'the undo of the assignment')

  await one.getByRole('button', { name: 'Archive' }).click()
  await until(async () => (await stored()).archivedAt, 'the archive')
  await row(page, name).waitFor({ state: 'detached' })
  await undo(page, 'Archived')
  await until(async () => !(await stored()).archivedAt, 'the undo')
  await row(page, name).waitFor()
  assert.deepEqual((await stored()).fields, [{ label: 'key', hasValue: true }])

  await page.reload()
  await peek(page, name).getByText('stored', { exact: true }).waitFor()
  const said = answers() + (await page.content())
  assert.ok(!said.includes('sesame-open-481') && !said.includes('another-secret-482'), 'no value comes back')
})

test('an MCP server is made, reached in another way, given to an agent and archived', async (t) => {
  const name = fresh('tickets ')
  const page = await browse(t, { as: 'ADMIN', at: `${org}/mcp-servers?open=new` })
  const known = dialog(page).getByLabel('Known server')
  await known.selectOption({ label: 'Linear' })
  await known.selectOption({ label: 'None' })
  assert.equal(await dialog(page).getByLabel('Name', { exact: true }).inputValue(), '', 'the choice can be undone')
  await known.selectOption({ label: 'Linear' })
  assert.equal(await dialog(page).getByRole('textbox', { name: 'URL' }).inputValue(), 'https://mcp.linear.app/mcp')
  await dialog(page).getByRole('link', { name: 'Documentation', exact: true }).waitFor()
  await dialog(page).getByLabel('Name', { exact: true }).fill(name)
  await dialog(page).getByRole('textbox', { name: 'URL' }).fill('not an address')
  await dialog(page).getByRole('button', { name: 'Create the MCP server' }).click()
  await dialog(page).getByRole('alert').first().waitFor()
  assert.equal(await dialog(page).getByLabel('Name', { exact: true }).inputValue(), name, 'what was typed stays')
  await dialog(page).getByRole('textbox', { name: 'URL' }).fill('https://tickets.example.com/mcp')
  await dialog(page).getByRole('button', { name: 'Create the MCP server' }).click()
  const one = peek(page, name)
  await one.getByText('They are not known yet.').waitFor()
  await one.getByLabel('Assign to an agent and test').waitFor()
  await one.getByText('By command').click()
  await one.getByRole('textbox', { name: 'Command' }).fill('/usr/local/bin/tickets')
  await one.getByRole('button', { name: 'Save' }).click()
  const id = Number(new URL(page.url()).searchParams.get('peek'))
  const stored = () => record('mcpServer', id, 'transport command url archivedAt agents { id }')
  await until(async () => (await stored()).transport === 'STDIO', 'the other transport')
  assert.deepEqual(await stored(), {
    transport: 'STDIO', command: '/usr/local/bin/tickets', url: null, archivedAt: null, agents: [],
  })
  await one.getByLabel('Assign this MCP server to an agent').click()
  await page.getByRole('option').first().click()
  await until(async () => (await stored()).agents.length === 1, 'the assignment')
  await one.getByRole('button', { name: 'Test the connection' }).click()
  await page.getByText(/Start the agent first|has not answered yet|It did not|It works/).first().waitFor()
  await one.getByRole('button', { name: 'Archive' }).click()
  await until(async () => (await stored()).archivedAt, 'the archive')
  await undo(page, 'Archived')
  await until(async () => !(await stored()).archivedAt, 'the undo')
})

test('a skill keeps its versions, and another person’s edit is shown beside mine', async (t) => {
  const name = fresh('refunds-')
  const page = await browse(t, { as: 'ADMIN', at: `${org}/skills?open=new` })
  const wrong = page.getByRole('alert').getByText('No slashes, and no dot at the beginning.')
  const field = dialog(page).getByLabel('Name', { exact: true })
  await field.pressSequentially('tone/of')
  await wrong.waitFor()
  await field.fill(name)
  await wrong.waitFor({ state: 'detached' })
  await dialog(page).getByLabel('What it is for').fill('When to refund')
  await dialog(page).getByLabel('Text').fill('Ask first.')
  await dialog(page).getByRole('button', { name: 'Create the skill' }).click()
  const one = peek(page, name)
  await one.getByLabel('Text').fill('Ask twice.')
  const id = Number(new URL(page.url()).searchParams.get('peek'))
  await api(
    'mutation($org: Id!, $id: Id!) { updateSkill(orgId: $org, id: $id, input: { content: "Never." }) { id } }',
    { id },
  )
  const stored = async () => (await record('skill', id, 'content')).content
  await one.getByRole('button', { name: 'Save', exact: true }).click()
  const mine = one.getByRole('button', { name: 'Save mine' })
  await mine.waitFor()
  await one.getByText('Never.').first().waitFor()
  assert.equal(await one.getByLabel('Text').inputValue(), 'Ask twice.', 'what was typed stays')
  assert.equal(await stored(), 'Never.', 'nothing is overwritten unasked')
  await mine.click()
  await until(async () => (await stored()) === 'Ask twice.', 'my text')
  await one.getByRole('heading', { name: 'Versions' }).waitFor()
  await one.getByRole('button', { name: 'Look' }).last().click()
  await dialog(page).getByText('Ask first.').waitFor()
})

test('a new name is taken back, unless another one was given since', async (t) => {
  const name = fresh('returns-')
  const create = 'mutation($org: Id!, $name: String!) { createSkill(orgId: $org, input: { name: $name, content: "" }) { id } }'
  const { id } = (await api(create, { name })).createSkill
  const stored = async () => (await record('skill', id, 'name')).name
  const page = await browse(t, { as: 'ADMIN', at: `${org}/skills?peek=${id}` })
  const field = page.getByRole('complementary').getByLabel('Name', { exact: true })
  const renames = async (to) => {
    await field.fill(to)
    await page.getByRole('complementary').getByRole('button', { name: 'Save', exact: true }).click()
    await until(async () => (await stored()) === to, 'the new name')
  }
  await renames(`${name}-two`)
  await undo(page, 'Saved')
  await until(async () => (await stored()) === name, 'the name before')
  await until(async () => (await field.inputValue()) === name, 'the field to say so')

  await renames(`${name}-three`)
  const rename = 'mutation($org: Id!, $id: Id!, $name: String!) { updateSkill(orgId: $org, id: $id, input: { name: $name }) { id } }'
  await api(rename, { id, name: `${name}-theirs` })
  await undo(page, 'Saved')
  await page.getByText('Someone changed this meanwhile, so nothing was undone.').waitFor()
  assert.equal(await stored(), `${name}-theirs`)
})

test('a channel is made by its transport, edited by sections, switched off and deleted by its name', async (t) => {
  const name = fresh('shop hook ')
  const page = await browse(t, { as: 'OWNER', at: `${org}/channels` })
  const answers = answersTo(page)
  await page.getByText('How people outside the panel reach agents.').waitFor()
  await page.getByRole('button', { name: 'New channel' }).first().click()
  await dialog(page).getByLabel('Agent').click()
  await page.getByRole('option').first().click()
  await dialog(page).getByLabel('Name', { exact: true }).fill(name)
  await dialog(page).getByLabel('Transport').selectOption('EMAIL')
  await dialog(page).getByLabel('IMAP host').waitFor()
  await shows(page, 'channel-new-light')
  await dialog(page).getByLabel('Transport').selectOption('SLACK')
  await dialog(page).getByLabel('Bot token').fill('xoxb-1')
  await dialog(page).getByRole('button', { name: 'Connect the channel' }).click()
  await dialog(page).getByText('Enter both: bot token and app token.').waitFor()
  await dialog(page).getByLabel('App token').fill('xapp-1')
  await dialog(page).getByLabel('Transport').selectOption('WEBHOOK')
  await dialog(page).getByLabel('Direction').selectOption('INBOUND')
  assert.equal(await dialog(page).getByLabel('Address for outgoing messages').count(), 0)
  await dialog(page).getByLabel('Direction').selectOption('BIDIRECTIONAL')
  await dialog(page).getByLabel('Secret for outgoing messages').fill('hook-secret-917')
  await dialog(page).getByRole('button', { name: 'Connect the channel' }).click()
  // Both the address and the secret for incoming messages are missing.
  await dialog(page).getByText('This can’t be empty.').nth(1).waitFor()
  await dialog(page).getByLabel('Address for outgoing messages').fill('https://example.com/hook')
  await dialog(page).getByLabel('Secret for incoming messages').fill('hook-secret-918')
  await dialog(page).getByRole('button', { name: 'Connect the channel' }).click()
  const one = peek(page, name)
  await one.getByText('/webhooks/webhook/').waitFor()
  await shows(page, 'channels-light')
  const id = Number(new URL(page.url()).searchParams.get('peek'))
  const fields = 'isActive inactiveReason whitelist instructions alertRecipientUserIds webhook { hasOutboundSecret outboundUrl }'
  const stored = () => record('channel', id, fields)
  assert.deepEqual((await stored()).webhook, { hasOutboundSecret: true, outboundUrl: 'https://example.com/hook' })

  await one.getByLabel('Instructions').fill('Be brief.')
  await one.getByRole('button', { name: 'Save' }).click()
  await until(async () => (await stored()).instructions === 'Be brief.', 'the instructions')
  await one.getByLabel('Add a sender').fill('shop@example.com')
  await page.keyboard.press('Enter')
  await one.getByRole('button', { name: 'Remove shop@example.com from the list' }).click()
  await until(async () => (await stored()).whitelist.length === 0, 'the removal')
  await undo(page, 'may no longer write')
  await until(async () => (await stored()).whitelist[0] === 'shop@example.com', 'the undo')
  await one.getByLabel('Add a recipient').click()
  await page.getByRole('option', { name: /Ada Admin/ }).click()
  await until(async () => (await stored()).alertRecipientUserIds.length === 1, 'the recipient')
  await one.getByText('Ada Admin').waitFor()

  await one.getByRole('button', { name: 'Switch off' }).click()
  await one.getByText('The channel was switched off.').waitFor()
  assert.equal((await stored()).inactiveReason, 'MANUAL')
  await one.getByRole('button', { name: 'Switch on' }).click()
  await until(async () => (await stored()).isActive, 'the channel')

  await one.getByRole('button', { name: 'Delete the channel' }).click()
  const really = dialog(page).getByRole('button', { name: 'Delete the channel' })
  assert.ok(await really.isDisabled(), 'the name has to be typed')
  await dialog(page).getByRole('textbox').fill(name)
  await really.click()
  await row(page, name).waitFor({ state: 'detached' })
  assert.ok(!answers().includes('hook-secret-917'), 'no secret comes back')
})

test('people who may not edit a record see that and why, and are refused by the service too', async (t) => {
  const name = fresh('watched ')
  const { createCredential, createChannel } = await api(
    `mutation($org: Id!, $name: String!, $agent: Id!) {
      createCredential(orgId: $org, input: { name: $name, kind: "api-key", fields: [] }) { id }
      createChannel(orgId: $org, input: { name: $name, agentId: $agent, transport: CALENDAR }) { id }
    }`,
    { name, agent: world.agent },
  )
  const page = await browse(t, { as: 'VIEWER', at: `${org}/channels?peek=${createChannel.id}`, fails: ['/graphql'] })
  const one = peek(page, name)
  await one.getByText('You may see this, but not change it.').first().waitFor()
  assert.ok(await one.getByLabel('Name', { exact: true }).isDisabled())
  await isAccessible(page, 'for a viewer')
  await one.getByRole('button', { name: 'Delete the channel' }).press('Enter')
  await dialog(page).getByText('agent.edit').first().waitFor()
  const edits = `mutation($o: Id!, $c: Id!, $k: Id!) {
    updateChannel(orgId: $o, id: $c, input: { isActive: false }) { id }
    archiveCredential(orgId: $o, id: $k) { id }
    createSkill(orgId: $o, input: { name: "mine", content: "" }) { id }
    createMcpServer(orgId: $o, input: { name: "mine", transport: HTTP, url: "https://example.com" }) { id }
  }`
  const { codes } = await call(page, edits, { c: createChannel.id, k: createCredential.id })
  assert.deepEqual(codes, Array(4).fill('PERMISSION_DENIED'))
})

test('a credential removed from two agents and returned to one belongs to only that agent', async (t) => {
  const name = fresh('Shared key ')
  const first = await record('agent', world.agent, 'id name serverId')
  const second = { name: fresh('Second ') }
  const { createAgent, createCredential } = await api(
    `mutation($org: Id!, $name: String!, $agent: String!, $server: Id!) {
      createAgent(orgId: $org, input: { name: $agent, serverId: $server }) { id }
      createCredential(orgId: $org, input: { name: $name, kind: "api-key", fields: [] }) { id }
    }`,
    { name, agent: second.name, server: first.serverId },
  )
  const { id } = createCredential
  await api(
    'mutation($org: Id!, $id: Id!, $agents: [Id!]!) { setCredentialAgents(orgId: $org, id: $id, input: { agentIds: $agents }) { id } }',
    { id, agents: [first.id, createAgent.id] },
  )
  const stored = async () => (await record('credential', id, 'agents { id }')).agents.map((agent) => agent.id)
  const page = await browse(t, { as: 'OWNER', at: `${org}/credentials?peek=${id}` })
  const take = (agent) => peek(page, name).getByRole('button', { name: `Remove this credential from ${agent.name}` })
  await take(first).waitFor()
  await take(second).waitFor()
  // The second is taken before the first has been answered.
  const release = await holdsBack(page, '**/graphql', 'SetCredentialAgents')
  await take(first).click()
  await take(second).click()
  release()
  await until(async () => (await stored()).length === 0, 'both to be taken')
  await undo(page, `${first.name} no longer has this credential`)
  await until(async () => (await stored()).length > 0, 'the undo')
  assert.deepEqual(await stored(), [first.id])
})
