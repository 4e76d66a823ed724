import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { call, record, thread } from './acts.mjs'
import { api, browse, isAccessible, shows, until, world } from './stage.mjs'

const at = (path) => `/o/${world.org}${path}`
const agentOf = async (name) => {
  const { agentFeed } = await api('query($org: Id!, $name: String) { agentFeed(orgId: $org, search: $name) { data { id name status revision } } }', { name })
  return agentFeed.data.find((agent) => agent.name === name)
}
const made = async (name) => {
  const { serverId } = await record('agent', world.agent, 'serverId')
  const create = 'mutation($org: Id!, $serverId: Id!, $name: String!) { createAgent(orgId: $org, input: { name: $name, serverId: $serverId }) { id } }'
  return (await api(create, { name, serverId })).createAgent.id
}

/** axe-core finds nothing, once no list of choices is open: while one is, the rest of the page is hidden from screen readers. */
async function isWell(page, where) {
  await until(async () => (await page.getByRole('listbox').count()) === 0, 'the lists to be closed')
  await isAccessible(page, where)
}

test('an agent is made, starts, and is talked to', async (t) => {
  const page = await browse(t, { as: 'OPERATOR', at: at('/agents') })
  await page.getByRole('row', { name: 'harbour' }).waitFor()
  await shows(page, 'agents-light')
  await page.getByRole('button', { name: 'New agent' }).click()
  const dialog = page.getByRole('dialog', { name: 'New agent' })
  await dialog.getByRole('button', { name: 'Create the agent' }).click()
  await dialog.getByText('This can’t be empty.').waitFor()
  await dialog.getByLabel('Name', { exact: true }).fill('Marlow')
  await dialog.getByRole('button', { name: 'Create the agent' }).click()
  await page.getByRole('heading', { name: 'Marlow' }).waitFor()
  await page.getByText('The agent is up and takes new work.').waitFor()
  assert.equal((await agentOf('Marlow')).status, 'RUNNING')
  await shows(page, 'agent-light')
  await page.getByRole('button', { name: 'New conversation' }).click()
  await page.getByRole('textbox', { name: 'Message' }).fill('Which beans are fresh?')
  await page.getByRole('button', { name: 'Send' }).click()
  await page.waitForURL(/\/conversations\/\d+$/)
  const conversation = Number(page.url().split('/').at(-1))
  const isAnswer = ({ role, content }) => role === 'ASSISTANT' && content.text?.includes('Which beans are fresh?')
  await until(async () => (await thread(conversation)).some(isAnswer), 'an answer')
  await page.goBack()
  await page.getByRole('link', { name: 'Turns' }).click()
  await page.getByRole('row', { name: /^Turn of .*, Done/ }).click()
  await page.getByText('The agent does not report its cost.').waitFor()
})

test('the log of an agent is followed, filtered, searched and downloaded', async (t) => {
  const id = await made('Scribe')
  await api('mutation($org: Id!, $id: Id!) { startAgent(orgId: $org, id: $id) { id } }', { id })
  const page = await browse(t, { as: 'OPERATOR', at: at(`/agents/${id}?tab=logs`) })
  const log = page.getByRole('log', { name: 'Log' })
  await log.getByText('Launch 1 begins.').waitFor()
  await until(async () => (await agentOf('Scribe')).status === 'RUNNING', 'the agent')
  const start = 'mutation($org: Id!, $id: Id!, $text: String!) { startConversation(orgId: $org, input: { agentId: $id, text: $text }) { id } }'
  await api(start, { id, text: 'stderr The kettle is cold\nstderr The Kettle is warm' })
  await log.getByText('The Kettle is warm').waitFor()
  await isWell(page, 'on a log')
  await shows(page, 'agent-logs')
  await page.getByRole('searchbox', { name: 'Search the log' }).fill('kettle')
  await page.getByText('1 of 2').waitFor()
  assert.equal(await log.locator('mark').count(), 2)
  // Going to a match pauses: what someone reads does not move.
  await page.getByRole('button', { name: 'Next match' }).click()
  await page.getByText('2 of 2').waitFor()
  await api(start, { id, text: 'stderr The milk is gone' })
  await page.getByRole('button', { name: /^Follow: \d+ new/ }).click()
  await log.getByText('The milk is gone').waitFor()
  await page.getByRole('combobox', { name: 'Source of lines' }).selectOption('Launches')
  await page.getByText('Not found').waitFor()
  assert.equal(await log.getByText('The milk is gone').count(), 0)
  const begun = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Download' }).click()
  const download = await begun
  assert.equal(download.suggestedFilename(), 'Scribe.log.txt')
  assert.match(await readFile(await download.path(), 'utf8'), /^\S+Z LAUNCH Launch 1 begins\.$/m)
})

test('pausing, resuming and stopping show the steps that the service makes', async (t) => {
  const id = await made('Stepper')
  const page = await browse(t, { as: 'OPERATOR', at: at(`/agents/${id}`) })
  const state = page.getByRole('region', { name: 'State' }).or(page.locator('section', { hasText: 'State' })).first()
  await page.getByRole('button', { name: 'Start', exact: true }).click()
  await page.getByRole('button', { name: 'Pause', exact: true }).click()
  await state.getByText('The agent stays in memory and takes no new turns.').waitFor()
  // The page shows the step before the service has answered.
  await until(async () => (await agentOf('Stepper')).status === 'PAUSED', 'the pause')
  await page.getByRole('button', { name: 'Resume', exact: true }).click()
  await state.getByText('The agent is up and takes new work.').waitFor()
  await page.getByRole('button', { name: 'Stop', exact: true }).click()
  await state.getByText('The agent is not running.').waitFor()
  await until(async () => (await agentOf('Stepper')).status === 'STOPPED', 'the stop')
  await page.getByRole('link', { name: 'Restart history' }).click()
  await page.getByText('Start 1').waitFor()
  await page.getByText(/^Up for [\d.]+ % of the time since .*, with 0 restarts$/).waitFor()
})

test('stopping an agent that works and waits says what it ends, and who did it', async (t) => {
  const id = await made('Waiter')
  await api('mutation($org: Id!, $id: Id!) { startAgent(orgId: $org, id: $id) { id } }', { id })
  await until(async () => (await agentOf('Waiter')).status === 'RUNNING', 'the agent')
  const talk = 'mutation($org: Id!, $id: Id!, $text: String) { startConversation(orgId: $org, input: { agentId: $id, text: $text }) { id } }'
  const { startConversation } = await api(talk, { id, text: 'do execute Hold the line {"command": "hold"}' })
  const feed = 'query($org: Id!, $id: Id!) { approvalFeed(orgId: $org, agentId: $id) { data { id status outcome } } }'
  await until(async () => (await api(feed, { id })).approvalFeed.data[0], 'the approval')
  const page = await browse(t, { as: 'OPERATOR', at: at(`/agents/${id}`) })
  const stop = page.getByRole('button', { name: 'Stop', exact: true })
  await stop.first().click()
  const dialog = page.getByRole('alertdialog', { name: /^Stop Waiter/ })
  await dialog.getByText('ends 1 turn and withdraws 1 approval').waitFor()
  await isAccessible(page, 'while it asks')
  await dialog.getByRole('button', { name: 'Pause instead' }).waitFor()
  await dialog.getByRole('button', { name: 'Stop', exact: true }).click()
  await until(async () => (await agentOf('Waiter')).status === 'STOPPED', 'the stop')
  const [approval] = (await api(feed, { id })).approvalFeed.data
  await page.goto(`${world.base}${at(`/approvals/${approval.id}`)}`)
  await page.getByText('Withdrawn: Otto Operator stopped the agent').waitFor()
  await page.goto(`${world.base}${at(`/conversations/${startConversation.id}`)}`)
  await page.getByText('Otto Operator stopped the agent.').waitFor()
})

test('a restarted agent comes up again, also after its page was left', async (t) => {
  const id = await made('Restless')
  const page = await browse(t, { as: 'OPERATOR', at: at(`/agents/${id}`) })
  await page.getByRole('button', { name: 'Start', exact: true }).click()
  await page.getByText('The agent is up and takes new work.').waitFor()
  // What only its next launch gives it.
  await api('mutation($org: Id!, $id: Id!) { updateAgent(orgId: $org, id: $id, input: { memoryMbOverride: 512 }) { id } }', { id })
  const answered = page.waitForResponse((answer) => answer.request().postData()?.includes('RestartAgent') ?? false)
  await page.getByRole('button', { name: 'Restart', exact: true }).click()
  await answered
  await page.goto('about:blank')
  await until(async () => (await agentOf('Restless')).status === 'RUNNING', 'its second launch')
  await page.goto(`${world.base}${at(`/agents/${id}?tab=launches`)}`)
  await page.getByText('Start 2').waitFor()
  assert.equal(await page.getByText('Restart', { exact: true }).count(), 0)
})

test('the conversation of a failed agent says so, starts the agent, and repeats the turn', async (t) => {
  const id = await made('Fragile')
  await api('mutation($org: Id!, $id: Id!) { updateAgent(orgId: $org, id: $id, input: { restartPolicy: NEVER }) { id } }', { id })
  await api('mutation($org: Id!, $id: Id!) { startAgent(orgId: $org, id: $id) { id } }', { id })
  await until(async () => (await agentOf('Fragile')).status === 'RUNNING', 'the agent')
  const page = await browse(t, { as: 'OPERATOR', at: at(`/agents/${id}`) })
  await page.getByRole('button', { name: 'New conversation' }).click()
  await page.getByRole('textbox', { name: 'Message' }).fill('exit 3')
  await page.getByRole('button', { name: 'Send' }).click()
  await page.waitForURL(/\/conversations\/\d+$/)
  const down = page.getByRole('status').filter({ hasText: 'Fragile has failed. The program exited.' })
  await down.waitFor()
  const retry = page.getByRole('button', { name: 'Retry this turn' })
  await retry.waitFor()
  await isWell(page, 'with a failed agent')
  await shows(page, 'conversation-failed')
  await down.getByRole('button', { name: 'Start' }).click()
  await down.waitFor({ state: 'detached' })
  await retry.click()
  await down.waitFor()
  await until(async () => (await page.getByText(/The agent ended before it had finished/).count()) === 2, 'the second failure')
  assert.equal(await page.getByRole('article').getByText('exit 3', { exact: true }).count(), 1, 'the same message')

  await page.goto(`${world.base}${at(`/agents/${id}`)}`)
  await page.getByText('Exit code 3').waitFor()
  await page.getByText(/The agent ended before it had finished/).first().waitFor()
  assert.equal(await page.getByText('INTERRUPTED').count(), 0)
})

test('the head of a column sorts the list, and keeps the focus', async (t) => {
  const page = await browse(t, { as: 'VIEWER', at: at('/agents') })
  const sorted = (name, way) => page.locator(`[role=columnheader][aria-sort=${way}]`, { hasText: name })
  await sorted('Name', 'ascending').waitFor()
  const state = page.getByRole('columnheader', { name: 'State' }).getByRole('button')
  await state.press('Enter')
  await page.waitForURL(/sort=STATUS/)
  await sorted('State', 'ascending').waitFor()
  await until(async () => state.evaluate((element) => element === document.activeElement), 'the focus in the head')
  await state.press('Enter')
  await page.waitForURL(/sort=STATUS&order=desc/)
  await sorted('State', 'descending').waitFor()
})

test('a list shows what others do, and narrows by its address', async (t) => {
  await made('Quiet one')
  const page = await browse(t, { as: 'OPERATOR', at: at('/agents?status=STOPPED&q=Quiet') })
  await page.getByRole('row', { name: 'Quiet one' }).waitFor()
  assert.equal(await page.getByRole('row', { name: 'harbour' }).count(), 0)
  await page.mouse.move(5, 5)
  await made('Quiet two')
  await page.getByRole('row', { name: 'Quiet two' }).waitFor()
  await page.getByRole('button', { name: 'Clear', exact: true }).click()
  await page.getByRole('row', { name: 'harbour' }).waitFor()
  assert.ok(!page.url().includes('status='))
  await page.goto(`${world.base}${at('/agents?q=nobody+is+called+this')}`)
  await page.getByRole('heading', { name: 'No agent matches' }).waitFor()
  await isWell(page, 'with nothing found')
})

test('when another person saved first, what was typed is kept, and both are shown', async (t) => {
  const id = await made('Contested')
  const page = await browse(t, { as: 'OPERATOR', at: at(`/agents/${id}?tab=settings`) })
  const role = page.getByLabel('Role')
  await role.fill('Mine')
  await api('mutation($org: Id!, $id: Id!) { updateAgent(orgId: $org, id: $id, input: { role: "Theirs" }) { id } }', { id })
  // The change reaches the page at once, and still nothing is overwritten.
  await page.getByRole('banner').or(page.locator('header')).getByText('Theirs').waitFor()
  await page.getByRole('button', { name: 'Save', exact: false }).first().click()
  await page.getByText('Yours is kept below').waitFor()
  await page.getByText('wrote: Theirs').waitFor()
  assert.equal(await role.inputValue(), 'Mine')
  await isWell(page, 'with a conflict')
  await shows(page, 'agent-conflict')
  await page.getByRole('button', { name: 'Save mine' }).click()
  await until(async () => (await record('agent', id, 'role')).role === 'Mine', 'the role')
})

test('settings are refused at their field, and what is without effect is not offered', async (t) => {
  const id = await made('Careful')
  const page = await browse(t, { as: 'OPERATOR', at: at(`/agents/${id}?tab=settings`) })
  await page.getByLabel('Ask a person from a risk of').fill('101')
  await page.getByRole('button', { name: 'Save', exact: false }).first().click()
  await page.getByText('From 0 to 100.', { exact: true }).waitFor()
  await page.getByLabel('Ask a person from a risk of').fill('0')
  await page.getByText('Asks before every action.').waitFor()
  await page.getByLabel('Always ask for').fill('painting the fence')
  await page.getByRole('button', { name: 'Save', exact: false }).first().click()
  await page.getByText('the agent is instructed to ask, but nothing enforces it').waitFor()
  assert.deepEqual(await record('agent', id, 'approvalAskThreshold notEnforced'), { approvalAskThreshold: 0, notEnforced: ['painting the fence'] })
  assert.equal(await page.getByText('Settings without effect yet').count(), 1)
  assert.equal(await page.getByLabel('Effort').count(), 0)
  await shows(page, 'agent-settings-light')
})

test('the list of sections leads to each of them, and marks what is not saved', async (t) => {
  const id = await made('Listed')
  const page = await browse(t, { as: 'OPERATOR', at: at(`/agents/${id}?tab=settings`) })
  const sections = page.getByRole('navigation', { name: 'Sections' })
  await page.getByLabel('Role').fill('Pilot')
  await sections.getByRole('link', { name: 'Name , not saved' }).or(sections.getByRole('link', { name: 'Name, not saved' })).waitFor()
  await sections.getByRole('link', { name: 'Restarts' }).click()
  await page.waitForURL(/#restarts$/)
  const restarts = page.getByRole('heading', { name: 'Restarts' })
  await until(async () => (await restarts.boundingBox()).y < 720, 'the section to be in view')
  await isWell(page, 'with an unsaved section')
  assert.equal(await page.getByLabel('Role').inputValue(), 'Pilot')
})

test('two revisions are compared, and the earlier one is taken back with a reason', async (t) => {
  const id = await made('Changing')
  await api('mutation($org: Id!, $id: Id!) { updateAgent(orgId: $org, id: $id, input: { role: "Support", language: "de" }) { id } }', { id })
  const page = await browse(t, { as: 'OPERATOR', at: at(`/agents/${id}?tab=revisions`) })
  await page.getByRole('row', { name: /^Revision 1/ }).click()
  const peek = page.getByRole('complementary', { name: 'Revision 1' })
  await peek.getByText('Support').waitFor()
  await peek.getByText('de', { exact: true }).waitFor()
  await shows(page, 'agent-revisions-light')
  await peek.getByRole('button', { name: 'Go back to this' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: 'Go back', exact: true }).click()
  await dialog.getByRole('alert').waitFor()
  await dialog.getByLabel('Why').fill('The language was wrong')
  await dialog.getByRole('button', { name: 'Go back', exact: true }).click()
  // Under the pointer, the list would keep its order and offer to refresh it.
  await page.mouse.move(0, 0)
  await page.getByRole('row', { name: /Revision 3: Back to revision 1/ }).waitFor()
  assert.deepEqual(await record('agent', id, 'role language revision'), { role: null, language: null, revision: 3 })
})

test('a skill is given and taken away, and that is undone', async (t) => {
  const id = await made('Learner')
  const { createSkill } = await api('mutation($org: Id!) { createSkill(orgId: $org, input: { name: "tone-of-voice", content: "Be short." }) { id } }')
  const has = async () => (await record('skill', createSkill.id, 'agents { id }')).agents.some((agent) => agent.id === id)
  const page = await browse(t, { as: 'OPERATOR', at: at(`/agents/${id}`) })
  await page.getByLabel('Add a skill to Learner').fill('tone')
  await page.getByRole('option', { name: 'tone-of-voice' }).click()
  await page.getByRole('link', { name: 'tone-of-voice' }).waitFor()
  await until(has, 'the skill')
  await page.getByRole('button', { name: 'Remove tone-of-voice from Learner' }).click()
  await page.getByText('Learner no longer has tone-of-voice').waitFor()
  assert.ok(!(await has()))
  await page.getByRole('button', { name: 'Undo' }).last().click()
  await until(has, 'the undo')
})

test('instructions are saved, and a duplicate has them, the settings and the skills', async (t) => {
  const id = await made('Original')
  const { createSkill } = await api('mutation($org: Id!) { createSkill(orgId: $org, input: { name: "packing", content: "Wrap it." }) { id } }')
  await api(
    `mutation($org: Id!, $id: Id!, $skill: Id!) {
      updateAgent(orgId: $org, id: $id, input: { language: "de", monthlyBudgetMicro: 5000000 }) { id }
      setSkillAgents(orgId: $org, id: $skill, input: { agentIds: [$id] }) { id }
    }`,
    { id, skill: createSkill.id },
  )
  const page = await browse(t, { as: 'OPERATOR', at: at(`/agents/${id}?tab=settings`) })
  await page.getByRole('textbox', { name: /^Instructions/ }).fill('Promise nothing.')
  await page.getByText('16 of 8,000 characters.').waitFor()
  await page.getByRole('button', { name: 'Save', exact: false }).first().click()
  await until(async () => (await record('agent', id, 'instructions')).instructions === 'Promise nothing.', 'the instructions')
  await page.getByRole('link', { name: 'revisions', exact: true }).click()
  await page.getByRole('row', { name: /^Revision 4/ }).waitFor()
  await page.getByRole('button', { name: 'More' }).click()
  await page.getByRole('menuitem', { name: 'Duplicate' }).click()
  const dialog = page.getByRole('dialog', { name: 'Duplicate Original' })
  assert.equal(await dialog.getByLabel('Name', { exact: true }).inputValue(), 'Original copy')
  assert.ok(await dialog.getByRole('checkbox', { name: 'packing' }).isChecked())
  await isWell(page, 'with a duplicate')
  await dialog.getByRole('button', { name: 'Create the agent' }).click()
  await page.getByRole('heading', { name: 'Original copy' }).waitFor()
  await page.getByText('Original copy lacks its budget').waitFor()
  const copy = await agentOf('Original copy')
  assert.equal(copy.status, 'STOPPED', 'it does not start without its budget')
  const has = await record('agent', copy.id, 'instructions language monthlyBudgetMicro skills { name }')
  assert.deepEqual(has, { instructions: 'Promise nothing.', language: 'de', monthlyBudgetMicro: null, skills: [{ name: 'packing' }] })
})

test('deleting takes the typed name, and can be undone', async (t) => {
  const id = await made('Short-lived')
  const page = await browse(t, { as: 'ADMIN', at: at(`/agents/${id}`) })
  await page.getByRole('button', { name: 'More' }).click()
  await page.getByRole('menuitem', { name: 'Delete the agent' }).click()
  const dialog = page.getByRole('alertdialog')
  const act = dialog.getByRole('button', { name: 'Delete the agent' })
  assert.ok(await act.isDisabled())
  await dialog.getByLabel('Type Short-lived to confirm').fill('Short-lived')
  await act.click()
  await page.waitForURL(/\/agents$/)
  assert.equal(await agentOf('Short-lived'), undefined)
  await page.getByRole('button', { name: 'Undo' }).click()
  await page.getByRole('heading', { name: 'Short-lived' }).waitFor()
  assert.equal((await agentOf('Short-lived')).status, 'STOPPED')
})

test('a VIEWER sees why not, and the service refuses the same call', async (t) => {
  const page = await browse(t, { as: 'VIEWER', at: at(`/agents/${world.agent}`) })
  const stop = page.getByRole('button', { name: 'Stop', exact: true })
  await stop.waitFor()
  assert.equal(await stop.getAttribute('aria-disabled'), 'true')
  await stop.press('Enter')
  const why = page.getByRole('dialog', { name: 'You may not do this' })
  await why.getByText('agent.edit').first().waitFor()
  const stops = 'mutation($o: Id!, $id: Id!) { stopAgent(orgId: $o, id: $id) { id } }'
  assert.deepEqual((await call(page, stops, { id: world.agent })).codes, ['PERMISSION_DENIED'])
  await page.goto(`${world.base}${at(`/agents/${world.agent}?tab=settings`)}`)
  await page.getByText('You may see this, but not change it.').first().waitFor()
  assert.equal(await page.getByText('You may see this, but not change it.').count(), 1, 'once, for all sections')
  assert.ok(await page.getByLabel('Role').isDisabled())
})

test('an image is made, archived and brought back', async (t) => {
  const page = await browse(t, { as: 'ADMIN', at: at('/agents?tab=images') })
  await page.getByRole('button', { name: 'New image' }).click()
  await page.getByLabel('Name', { exact: true }).fill('OpenCode')
  await page.getByLabel('Reference').fill('example/opencode:1')
  await page.getByRole('button', { name: 'Create the image' }).click()
  const peek = page.getByRole('complementary', { name: 'OpenCode' })
  await peek.waitFor()
  const archived = async () => {
    const { images } = await api('query($org: Id!) { images(orgId: $org, includeArchived: true) { name archivedAt } }')
    return images.find(({ name }) => name === 'OpenCode').archivedAt !== null
  }
  await peek.getByRole('button', { name: 'Archive' }).click()
  await until(archived, 'it being archived')
  await page.getByRole('button', { name: 'Undo' }).click()
  await until(async () => !(await archived()), 'the undo')
})

test('on a phone, an agent can be read and stopped', async (t) => {
  const page = await browse(t, { as: 'OPERATOR', width: 375, at: at(`/agents/${world.agent}`) })
  await page.getByText('The agent is up and takes new work.').waitFor()
  await page.getByRole('button', { name: 'Stop', exact: true }).waitFor()
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)
  assert.ok(!wide, 'nothing sticks out')
  await isWell(page, 'on a phone')
  await shows(page, 'agent-phone')
})
