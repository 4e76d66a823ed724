import assert from 'node:assert/strict'
import { test } from 'node:test'
import { call, deferred, dialog, fresh, hasEntered, holdsBack, intercepts, row } from './acts.mjs'
import { api, browse, isAccessible, shows, until, world } from './stage.mjs'

const org = `/o/${world.org}`

/** A person's role, according to the service. */
async function roleOf(page, name) {
  const { data } = await call(page, 'query($o: Id!, $s: String) { members(orgId: $o, page: 1, limit: 50, search: $s) { data { name role } } }', {
    s: name,
  })
  return data.members.data.find((member) => member.name === name)?.role
}

test('a person is invited by mail, and the invitation is revoked', async (t) => {
  const email = `${fresh('guest')}@example.org`
  const page = await browse(t, { as: 'OWNER', at: `${org}/members` })
  await page.getByRole('button', { name: 'Invite' }).click()
  await dialog(page).getByLabel('E-mail address').fill('not an address')
  await dialog(page).getByRole('button', { name: 'Invite' }).click()
  await dialog(page).getByRole('alert').first().waitFor()
  await dialog(page).getByLabel('E-mail address').fill(email)
  await dialog(page).getByRole('radio', { name: /^Viewer/ }).check()
  await page.keyboard.press('Enter')
  await dialog(page).waitFor({ state: 'detached' })
  await page.waitForURL(/tab=invitations/)
  await row(page, email).getByText('Viewer').waitFor()
  await page.getByRole('button', { name: `Revoke the invitation of ${email}` }).click()
  await page.getByRole('alertdialog').getByRole('button', { name: 'Revoke' }).click()
  // Behind a dialog no row is seen.
  await page.getByRole('alertdialog').waitFor({ state: 'detached' })
  await row(page, email).waitFor({ state: 'detached' })
  const { data } = await call(page, 'query($o: Id!) { invitations(orgId: $o, page: 1, limit: 50) { data { email } } }')
  assert.ok(!data.invitations.data.some((invitation) => invitation.email === email))
})

test('what is searched for may have a pause after a blank: nothing of it is lost', async (t) => {
  const page = await browse(t, { as: 'OWNER', at: `${org}/members` })
  const field = page.getByRole('searchbox', { name: 'Search members' })
  await field.pressSequentially('Otto ')
  await page.waitForURL(/[?&]q=Otto(&|$)/)
  await field.pressSequentially('Op')
  await page.waitForURL(/[?&]q=Otto(\+|%20)Op(&|$)/)
  assert.equal(await field.inputValue(), 'Otto Op')
  await row(page, 'Otto Operator').waitFor()
  await page.evaluate((address) => history.pushState({}, '', address), `${org}/members?q=Vera`)
  await until(async () => (await field.inputValue()) === 'Vera', 'the field to follow the address')
})

test('a role is changed from the list, seen by others at once, and taken back', async (t) => {
  const page = await browse(t, { as: 'OWNER', at: `${org}/members` })
  const other = await browse(t, { as: 'ADMIN', at: `${org}/members` })
  await row(other, 'Otto Operator').getByText('Operator', { exact: true }).waitFor()
  const otto = await browse(t, { as: 'OPERATOR', at: `${org}/agents/${world.agent}` })
  const stop = otto.getByRole('button', { name: 'Stop', exact: true })
  await stop.waitFor()
  await page.getByRole('button', { name: 'Role of Otto Operator: Operator' }).click()
  await page.getByRole('menuitem', { name: /^Viewer/ }).click()
  await row(page, 'Otto Operator').getByText('Viewer', { exact: true }).waitFor()
  await row(other, 'Otto Operator').getByText('Viewer', { exact: true }).waitFor()
  await until(async () => (await roleOf(page, 'Otto Operator')) === 'VIEWER', 'the role')
  await until(async () => (await stop.getAttribute('aria-disabled')) === 'true', 'the buttons of his open page')
  await page.getByRole('button', { name: 'Undo' }).click()
  await row(other, 'Otto Operator').getByText('Operator', { exact: true }).waitFor()
  assert.equal(await roleOf(page, 'Otto Operator'), 'OPERATOR')
  await until(async () => (await stop.getAttribute('aria-disabled')) === null, 'the buttons to work again')
  await shows(page, 'members-light')
})

test('a token is shown once and can’t be lost by Esc; it works until it is revoked', async (t) => {
  const name = fresh('ci ')
  const page = await browse(t, { as: 'OWNER', at: `${org}/tokens?open=new` })
  await dialog(page).getByLabel('Name', { exact: true }).fill(name)
  await dialog(page).getByRole('button', { name: 'Only read' }).click()
  await dialog(page).getByRole('button', { name: 'Issue the token' }).click()
  const shown = dialog(page).getByRole('group').filter({ hasText: 'mst_' })
  const secret = (await shown.textContent()).trim()
  await hasEntered(shown)
  await page.keyboard.press('Escape')
  await page.mouse.click(5, 5)
  assert.equal((await shown.textContent()).trim(), secret, 'it is still there')
  assert.ok(await dialog(page).getByRole('button', { name: 'Done' }).isDisabled())
  await dialog(page).getByLabel('I have stored it').check()
  await dialog(page).getByRole('button', { name: 'Done' }).click()
  await dialog(page).waitFor({ state: 'detached' })
  assert.ok(!(await page.content()).includes(secret))

  const feed = 'query($org: Id!) { agentFeed(orgId: $org) { data { id } } }'
  const works = () => api(feed, {}, world.base, secret).then((data) => Boolean(data?.agentFeed), () => false)
  assert.ok(await works())
  await row(page, name).click()
  const one = page.getByRole('complementary', { name })
  await one.getByLabel('Name', { exact: true }).fill(`${name} two`)
  await one.getByRole('button', { name: 'Save' }).click()
  await row(page, `${name} two`).waitFor()
  await page.getByRole('button', { name: 'Revoke', exact: true }).click()
  await dialog(page).getByRole('button', { name: 'Revoke the token' }).click()
  await until(async () => !(await works()), 'the end of the token')
})

test('settings that another person changed meanwhile are shown beside what was typed', async (t) => {
  const page = await browse(t, { as: 'OWNER', at: `${org}/settings`, fails: ['/graphql'] })
  const [mine, theirs, last] = ['17', '23', '19']
  const count = page.getByLabel('Backups to keep of each agent')
  await count.fill(mine)
  // Another person's change does not replace what was typed.
  const other = await browse(t, { as: 'OWNER', at: '/account' })
  const set = 'mutation($o: Id!, $c: Int) { updateOrganization(orgId: $o, input: { backupRetention: $c }) { id } }'
  assert.deepEqual((await call(other, set, { c: Number(theirs) })).codes, [])
  assert.equal(await count.inputValue(), mine)
  const stored = async () =>
    (await call(other, 'query($o: Id!) { organization(orgId: $o) { backupRetention } }')).data.organization.backupRetention
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText(`wrote: ${theirs}`).waitFor()
  assert.equal(await count.inputValue(), mine, 'what was typed stays')
  assert.equal(await stored(), Number(theirs), 'nothing is overwritten unasked')
  await isAccessible(page, 'in a conflict')
  await shows(page, 'settings-conflict-light')
  // The service saves it, and what is typed before its answer arrives is another edit.
  const [answered, answer] = deferred()
  await intercepts(page, 'updateOrganization', async (route) => {
    const response = await route.fetch()
    await answered
    await route.fulfill({ response })
  })
  await page.getByRole('button', { name: 'Save mine' }).click()
  await until(async () => (await stored()) === Number(mine), 'my number')
  await count.fill(last)
  answer()
  await page.getByText('Saved', { exact: true }).first().waitFor()
  assert.equal(await count.inputValue(), last)

  // A change of another part of the record is not a conflict.
  const schedule = 'mutation($o: Id!, $n: String!) { updateOrganization(orgId: $o, input: { backupCron: $n }) { id } }'
  assert.deepEqual((await call(other, schedule, { n: '30 2 * * 1' })).codes, [])
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await until(async () => (await stored()) === Number(last), 'my second number')
})

test('one’s own name is changed in all browsers, and a session elsewhere is ended', async (t) => {
  const page = await browse(t, { as: 'VIEWER', at: '/account' })
  const other = await browse(t, { as: 'VIEWER', at: `${org}/members`, fails: ['/graphql'] })
  await row(other, 'Vera Viewer').waitFor()
  await page.getByLabel('Your name').fill('Vera V.')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('button', { name: /You: Vera V\.|Vera V\./ }).waitFor()
  await page.getByLabel('Your name').fill('Vera Viewer')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('button', { name: /You: Vera Viewer/ }).waitFor()
  await page.goto(`${world.base}/account?tab=security`)
  await page.getByText('This one').waitFor()
  await page.getByRole('button', { name: 'End all others' }).click()
  await until(async () => (await page.getByRole('button', { name: 'End', exact: true }).count()) === 0, 'the end of the others')
  const viewer = '{ viewer { user { id } } }'
  assert.deepEqual((await call(other, viewer)).codes, ['UNAUTHENTICATED'], 'the other browser is signed out')
  assert.deepEqual((await call(page, viewer)).codes, [], 'this one is not')
})

test('what one is notified of by mail is chosen for each event, kept, and taken back', async (t) => {
  const { organization } = await api('query($org: Id!) { organization(orgId: $org) { name } }')
  const page = await browse(t, { as: 'OPERATOR', at: '/account?tab=notifications' })
  const choice = page.getByLabel(`An agent failed, ${organization.name}`)
  const stored = async () => {
    const { data } = await call(page, 'query($o: Id!) { notifications(orgId: $o) { approvalRaised approvalExpiring agentFailed } }')
    return data.notifications
  }
  const before = await stored()
  assert.notEqual(before.agentFailed, 'DIGEST')
  await choice.selectOption('Collected')
  await until(async () => (await stored()).agentFailed === 'DIGEST', 'the choice')
  assert.deepEqual(await stored(), { ...before, agentFailed: 'DIGEST' }, 'the others stay')
  await page.getByRole('button', { name: 'Undo' }).click()
  await until(async () => (await stored()).agentFailed === before.agentFailed, 'the undo')
  await choice.selectOption('Collected')
  await until(async () => (await stored()).agentFailed === 'DIGEST', 'the choice again')
  await page.reload()
  await until(async () => (await choice.inputValue()) === 'DIGEST', 'what was kept')
})

test('an organization that is still being read does not show the refusal of the one before', async (t) => {
  const page = await browse(t, { as: 'OWNER', at: '/o/999999', fails: ['/graphql'] })
  const refusal = page.getByRole('heading', { name: 'You do not belong to this organization' })
  await refusal.waitFor()
  const release = await holdsBack(page, '**/graphql', 'ShellOrganization')
  await page.evaluate((address) => history.pushState({}, '', address), `/o/${world.org}/agents`)
  await refusal.waitFor({ state: 'detached' })
  release()
  await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor()
})

test('an address whose id is not a number is not found', async (t) => {
  const page = await browse(t, { as: 'OWNER', at: `/o/${world.org}/agents/images` })
  await page.getByRole('heading', { name: 'Page not found' }).waitFor()
  await page.goto(`${world.base}/o/north/agents`)
  await page.getByRole('heading', { name: 'Page not found' }).waitFor()
})
