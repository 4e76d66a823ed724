// The policies: a cell is changed in a draft, its effect is shown, it is published, it holds for others, and it is reverted.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { call, dialog, escapes, fresh, hasFocus, row, stepTo, tabTo } from './acts.mjs'
import { apiAs, browse, isAccessibleInBoth, shows, until, world } from './stage.mjs'

const org = `/o/${world.org}`
const at = `${org}/policies`
const grid = (page) => page.getByRole('grid', { name: 'Permissions by role' })
const cell = (page, permission, role, value) =>
  grid(page).getByRole('gridcell', { name: new RegExp(`^${permission.replace('.', '\\.')} for ${role}: ${value}`) })
const isDraft = (page) => page.getByText('Draft, not in force')
const effect = (page) => page.getByRole('complementary', { name: 'Effect' })

const box = (page) => page.getByRole('textbox', { name: 'Text of the rules' })
const inText = (page, text) =>
  until(async () => (await box(page).locator('.cm-line').allTextContents()).join('\n') === text, `the text to be ${JSON.stringify(text)}`)

/** Replaces the whole text. */
async function writes(page, text) {
  await box(page).press('Control+a')
  await page.keyboard.insertText(text)
}

/** The text in force. */
async function inForce() {
  const { policy } = await apiAs('OWNER', 'query($org: Id!) { policy(orgId: $org) { version text } }')
  return policy
}

/** Another person publishes a text. */
const publishes = async (text, reason) =>
  apiAs(
    'OWNER',
    `mutation($org: Id!, $version: String!, $text: String!, $reason: String!) {
      editPolicy(orgId: $org, input: { version: $version, text: $text, reason: $reason }) { version }
    }`,
    { version: (await inForce()).version, text, reason },
  )

/** What the service answers to the session of a page. */
const creates = async (page) =>
  (await call(page, 'mutation($o: Id!, $name: String!) { createSkill(orgId: $o, input: { name: $name, content: "" }) { id } }', { name: fresh('skill-') })).codes

async function publishesDraft(page, reason) {
  await page.getByRole('button', { name: 'Publish…' }).click()
  const asked = dialog(page)
  await asked.getByLabel('Reason').fill(reason)
  await asked.getByRole('button', { name: 'Publish', exact: true }).click()
  await asked.waitFor({ state: 'detached' })
}

test('an OWNER changes a cell, sees the effect, publishes it, and reverts it; it holds for a member’s open session', async (t) => {
  const viewer = await browse(t, { as: 'VIEWER', at: `${org}/skills`, fails: ['/graphql'] })
  const make = viewer.getByRole('button', { name: 'New skill' }).first()
  const isGrey = (grey) => until(async () => ((await make.getAttribute('aria-disabled')) === 'true') === grey, `the button to be grey: ${grey}`)
  await isGrey(true)
  assert.deepEqual(await creates(viewer), ['PERMISSION_DENIED'])
  const [write, pause, back] = ['They write skills ', 'A pause ', 'Back to the pause '].map(fresh)
  const line = `p, VIEWER, ${world.org}, skill.create, allow`
  const replay = 'query($org: Id!, $text: String!) { simulatePolicy(orgId: $org, text: $text, days: 14) { flipped } }'
  const isRecorded = async () => (await apiAs('OWNER', replay, { text: line })).simulatePolicy.flipped > 0
  await until(isRecorded, 'the refused call to be recorded')

  const page = await browse(t, { as: 'OWNER', at })
  await cell(page, 'skill.create', 'Viewer', 'no').click()
  await cell(page, 'skill.create', 'Viewer', 'yes, own line: allow, in the draft').waitFor()
  await isDraft(page).waitFor()
  await effect(page).getByText('gains', { exact: true }).waitFor()
  await effect(page).getByText('Vera Viewer').waitFor()
  // The refused call from above would be allowed.
  await effect(page).getByRole('link', { name: /^Create skill ×/ }).waitFor()
  await isAccessibleInBoth(page, 'with a draft')
  await shows(page, 'policies-draft')
  assert.equal((await inForce()).text, null, 'a draft is not in force')
  await effect(page).getByText(/calls? refused/).waitFor()
  await page.getByRole('button', { name: 'Never used in 14 days' }).click()
  await cell(page, 'skill.create', 'Viewer', 'yes').waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Never used in 14 days' }).click()

  // The text is the same draft.
  await page.getByRole('link', { name: 'Text' }).click()
  await inText(page, `${line}\n`)
  await writes(page, `# Viewers write.\n${line}\np, VIEWER, ${world.org}, skill.edti, allow\n`)
  await effect(page).getByText('did you mean "skill.edit"').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Publish…' }).isDisabled(), true)
  await effect(page).getByRole('button', { name: 'Line 3' }).click()
  assert.equal(await box(page).evaluate((element) => String(element.getRootNode().getSelection())), `p, VIEWER, ${world.org}, skill.edti, allow`)
  await effect(page).getByRole('button', { name: 'Write skill.edit' }).click()
  await inText(page, `# Viewers write.\n${line}\np, VIEWER, ${world.org}, skill.edit, allow\n`)
  await writes(page, `# Viewers write.\n${line}\n${line}\n`)
  await effect(page).getByRole('button', { name: 'Remove line 3' }).click()
  await inText(page, `# Viewers write.\n${line}\n`)
  await page.getByLabel('Permission', { exact: true }).fill('skill.create')
  await page.getByLabel('Allow or deny').selectOption('deny')
  await page.getByRole('button', { name: 'Write the line' }).click()
  // In place of the line about it.
  await inText(page, `# Viewers write.\n${line.replace('allow', 'deny')}\n`)
  await writes(page, `# Viewers write.\n${line}\n`)
  await page.reload()
  await inText(page, `# Viewers write.\n${line}\n`)

  await publishesDraft(page, write)
  await isDraft(page).waitFor({ state: 'detached' })
  assert.equal((await inForce()).text, `# Viewers write.\n${line}\n`)
  assert.deepEqual(await creates(viewer), [], 'the open session may at once')
  await viewer.reload()
  await isGrey(false)

  await page.getByRole('link', { name: 'History' }).click()
  await row(page, write).waitFor()
  // The version before it: the rules as they were.
  await publishes('', pause)
  await publishes(`${line}\n`, 'Again')
  await row(page, pause).click()
  const beside = page.getByRole('complementary', { name: /^Version/ })
  await beside.getByText('loses', { exact: true }).waitFor()
  await isAccessibleInBoth(page, 'with a version')
  await beside.getByRole('button', { name: 'Go back to this…' }).click()
  await dialog(page).getByLabel('Reason').fill(back)
  await dialog(page).getByRole('button', { name: 'Go back' }).click()
  await row(page, back).waitFor()
  assert.equal((await inForce()).text, null)
  assert.deepEqual(await creates(viewer), ['PERMISSION_DENIED'])
  await viewer.reload()
  await isGrey(true)
})

test('the text is written by the keyboard, with choices; a problem is underlined, and corrected there', async (t) => {
  const page = await browse(t, { as: 'OWNER', at: `${at}?tab=text` })
  const option = (name) => page.getByRole('option', { name, exact: true, selected: true })
  await tabTo(page, box(page))
  await page.keyboard.press('Control+a')
  // `j` and `?` are keys of the panel elsewhere.
  await page.keyboard.type('# j?\np, VIE')
  await option('VIEWER').waitFor()
  await page.keyboard.press('Enter')
  await page.keyboard.type(`, ${world.org}, skill.ed`)
  await option('skill.edit').waitFor()
  await page.getByText('Change a skill.').waitFor()
  await isAccessibleInBoth(page, 'with choices')
  await page.keyboard.press('Escape')
  await page.keyboard.type('ti, allow\n')
  const [right, wrong] = ['edit', 'edti'].map((word) => `# j?\np, VIEWER, ${world.org}, skill.${word}, allow\n`)
  await inText(page, wrong)
  const said = 'unknown permission "skill.edti" (did you mean "skill.edit"?)'
  const here = page.locator('.cm-tooltip').filter({ hasText: said })
  await effect(page).getByText(said).waitFor()
  await box(page).getByText('skill.edti').hover()
  await here.waitFor()
  await isAccessibleInBoth(page, 'with a problem')
  await here.getByRole('button', { name: 'Write skill.edit' }).click()
  await inText(page, right)

  await box(page).press('Control+z')
  await inText(page, wrong)
  await effect(page).getByText(said).waitFor()
  await page.keyboard.press('F8')
  await page.getByText(`Line 2: ${said}`, { exact: true }).waitFor({ state: 'attached' })
  await page.keyboard.press('Control+.')
  await inText(page, right)
  await effect(page).getByText('gains', { exact: true }).waitFor()

  // The history is the draft's.
  await page.getByRole('link', { name: 'Matrix' }).click()
  await grid(page).waitFor()
  await page.getByRole('link', { name: 'Text' }).click()
  await box(page).press('Control+z')
  await inText(page, wrong)
  await page.keyboard.press('Tab')
  await until(() => hasFocus(page.getByLabel('Role', { exact: true })), 'Tab to leave the text')
})

test('the matrix is changed by the keyboard alone, and back; a fixed cell says why', async (t) => {
  const page = await browse(t, { as: 'OWNER', at: `${at}?q=contact.view` })
  await tabTo(page, cell(page, 'contact.view', 'Owner', 'yes'))
  await page.keyboard.press('End')
  const token = cell(page, 'contact.view', 'Service token', 'yes, only the operator can change it')
  await until(() => hasFocus(token), 'the last column')
  await page.keyboard.press('Enter')
  await page.getByText(/^The most that a service token can have/).first().waitFor()
  await stepTo(page, cell(page, 'contact.view', 'Viewer', 'no'), 'ArrowLeft')
  await effect(page).getByText(`p, VIEWER, ${world.org}, contact.view, allow`).waitFor()
  await page.keyboard.press('Space')
  await cell(page, 'contact.view', 'Viewer', 'yes').waitFor()
  await isDraft(page).waitFor()
  await effect(page).getByText(/^To allow it/).waitFor({ state: 'detached' })
  await page.keyboard.press('Enter')
  await cell(page, 'contact.view', 'Viewer', 'no').waitFor()
  await isDraft(page).waitFor({ state: 'detached' })
})

test('a draft that fails an expectation of the operator says which', async (t) => {
  const page = await browse(t, { as: 'OWNER', at: `${at}?q=agent.delete` })
  await cell(page, 'agent.delete', 'Viewer', 'no').focus()
  await effect(page).getByText('No single rule of this organization can allow it.').waitFor()
  assert.equal(await effect(page).getByText(/^To allow it/).count(), 0, 'what would be refused is not advised')
  await cell(page, 'agent.delete', 'Viewer', 'no').click()
  await isDraft(page).waitFor()
  await effect(page).getByText('Not met: Viewers may not delete an agent').waitFor()
  await effect(page).getByText('The operator requires: Viewers may not delete an agent (agent.delete). Line 1 allows it.').waitFor()
  await isAccessibleInBoth(page, 'with a failed expectation')
  assert.equal(await page.getByRole('button', { name: 'Publish…' }).isDisabled(), true)
  await cell(page, 'agent.delete', 'Viewer', 'yes').click()
  await effect(page).getByText(/^\d+ met$/).waitFor()
})

test('an expected cell keeps its result: a draft against it fails at its line', async (t) => {
  await publishes('', 'From the start')
  const page = await browse(t, { as: 'OWNER', at: `${at}?q=contact.view` })
  await cell(page, 'contact.view', 'Viewer', 'no').focus()
  await effect(page).getByRole('button', { name: 'Expect this' }).click()
  await cell(page, 'contact.view', 'Viewer', 'no, expected: no').waitFor()
  await publishesDraft(page, 'Contacts are private')
  assert.equal((await inForce()).text, 'e, VIEWER, contact.view, deny\n')
  await cell(page, 'contact.view', 'Viewer', 'no').click()
  await cell(page, 'contact.view', 'Viewer', 'yes, own line: allow, in the draft, expected: no, not met').waitFor()
  await effect(page).getByText('Not met: Viewers may not see contacts and their addresses').waitFor()
  await isAccessibleInBoth(page, 'with a failed expectation of its own')
  assert.equal(await page.getByRole('button', { name: 'Publish…' }).isDisabled(), true)
  await effect(page).getByRole('button', { name: 'Line 1' }).first().click()
  await page.getByRole('textbox', { name: 'Text of the rules' }).waitFor()
  await page.getByRole('link', { name: 'Matrix' }).click()
  await cell(page, 'contact.view', 'Viewer', 'yes').focus()
  await effect(page).getByRole('button', { name: 'Remove' }).click()
  await publishesDraft(page, 'No longer private')
  assert.equal((await inForce()).text, `p, VIEWER, ${world.org}, contact.view, allow\n`)
  await publishes('', 'As it was')
})

test('a member’s permissions are explained by their role, and can’t be changed from there', async (t) => {
  const { members } = await apiAs('OWNER', 'query($org: Id!) { members(orgId: $org, page: 1, limit: 50, search: "Vera") { data { userId } } }')
  const page = await browse(t, { as: 'OWNER', at: `${at}?member=${members.data[0].userId}` })
  await effect(page).getByRole('heading', { name: 'As Vera Viewer' }).waitFor()
  await effect(page).getByRole('listitem').filter({ hasText: 'Contacts: not shown' }).waitFor()
  await effect(page).getByRole('listitem').filter({ hasText: 'Agents: shown' }).waitFor()
  assert.equal(await cell(page, 'contact.view', 'Owner', 'yes').count(), 0, 'only the column of the role')
  await cell(page, 'contact.view', 'Viewer', 'no').click()
  await effect(page).getByText(`p, VIEWER, ${world.org}, contact.view, allow`).waitFor()
  await effect(page).getByText('Vera Viewer, Viewer').waitFor()
  assert.equal(await isDraft(page).count(), 0)
  await isAccessibleInBoth(page, 'as a member')
})

test('another version, published meanwhile, stands beside the draft, whose cells are applied to it', async (t) => {
  await publishes('', 'From the start')
  const page = await browse(t, { as: 'OWNER', at, fails: ['/graphql'] })
  await cell(page, 'contact.view', 'Viewer', 'no').click()
  await isDraft(page).waitFor()
  const theirs = `# Theirs\np, VIEWER, ${world.org}, skill.edit, allow\n`
  await page.getByRole('button', { name: 'Publish…' }).click()
  await dialog(page).getByLabel('Reason').fill('Unseen')
  await publishes(theirs, 'The help desk')
  await page.getByText('The help desk').waitFor()
  await dialog(page).getByRole('button', { name: 'Publish', exact: true }).click()
  await dialog(page).waitFor({ state: 'detached' })
  assert.equal((await inForce()).text, theirs, 'what the dialog did not show is not replaced')
  const conflict = page.getByRole('region', { name: 'Another version was published' })
  await conflict.getByText('The help desk').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Publish…' }).isDisabled(), true)
  await isAccessibleInBoth(page, 'with a conflict')
  await conflict.getByRole('button', { name: 'Apply my cells to theirs' }).click()
  await conflict.waitFor({ state: 'detached' })
  await publishesDraft(page, 'The phone desk')
  await until(async () => (await inForce()).text === `${theirs}p, VIEWER, ${world.org}, contact.view, allow\n`, 'both')
  await publishes('', 'As it was')
})

test('who may not edit the rules sees them, and why they can’t be changed', async (t) => {
  const page = await browse(t, { as: 'ADMIN', at, fails: ['/graphql'] })
  const why = page.getByRole('dialog', { name: 'You may not do this' })
  await cell(page, 'contact.view', 'Viewer', 'no').press('Enter')
  await why.getByText('policy.edit', { exact: true }).first().waitFor()
  await escapes(page, why)
  assert.equal(await isDraft(page).count(), 0)
  await page.getByRole('button', { name: 'Publish…' }).press('Enter')
  await escapes(page, why)
  const { codes } = await call(
    page,
    'mutation($o: Id!) { allowPermission(orgId: $o, input: { role: VIEWER, permission: "contact.view", reason: "no" }) { version } }',
  )
  assert.deepEqual(codes, ['PERMISSION_DENIED'])
})

test('a change of calls that are decided like that already is none', async (t) => {
  await publishes('', 'From the start')
  const line = `p, VIEWER, ${world.org}, contact.view, allow\n`
  await apiAs('VIEWER', 'query($org: Id!) { contacts(orgId: $org, page: 1, limit: 1) { total } }').catch(() => {})
  const replay = 'query($org: Id!, $text: String!) { simulatePolicy(orgId: $org, text: $text, days: 14) { flipped } }'
  const flipped = async (text) => (await apiAs('OWNER', replay, { text })).simulatePolicy.flipped
  await until(async () => (await flipped(line)) > 0, 'the refused call to be recorded')
  await publishes(line, 'The front desk')
  assert.equal(await flipped(line), 0)

  // With a single version, too, there is a way back.
  const page = await browse(t, { as: 'OWNER', at: `${at}?tab=history` })
  await page.getByRole('button', { name: 'Go back to no own rules…' }).click()
  await dialog(page).getByLabel('Reason').fill('No front desk')
  await dialog(page).getByRole('button', { name: 'Go back', exact: true }).click()
  await row(page, 'No front desk').waitFor()
  assert.equal((await inForce()).text, null)
  await page.getByRole('button', { name: 'Go back to no own rules…' }).waitFor({ state: 'detached' })
})

test('who may not see the rules is told so, and nothing is asked that would be refused', async (t) => {
  // No request fails.
  const page = await browse(t, { as: 'OPERATOR', at })
  await page.getByRole('heading', { name: 'You may not see this' }).waitFor()
  await isAccessibleInBoth(page, 'without the permission')
})

test('on a phone the roles and the reason stay in sight', async (t) => {
  const page = await browse(t, { as: 'OWNER', at, width: 390, height: 844 })
  const far = cell(page, 'skill.view', 'Owner', 'yes')
  await far.scrollIntoViewIfNeeded()
  await far.focus()
  const reason = effect(page).getByText('skill.view', { exact: true })
  await reason.waitFor()
  const topOf = async (locator) => (await locator.boundingBox()).y
  const [head, middle, why] = [
    await topOf(grid(page).getByRole('columnheader', { name: 'Owner' })),
    await topOf(far),
    await topOf(reason),
  ]
  assert.ok(0 < head && head < middle && middle < why && why < 844, `${head}, ${middle}, ${why}`)
  await isAccessibleInBoth(page, 'on a phone')
  await shows(page, 'policies-phone')
})
