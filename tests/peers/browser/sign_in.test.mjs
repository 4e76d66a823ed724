// Every way in: a password, a second factor, a provider of accounts, a link from a mail. Here the service has a public URL,
// as everywhere but on one's own machine, so that the cookie is the one that browsers bind to a secure place.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { call, codeOf, hasEntered, hasFocus, holdsBack } from './acts.mjs'
import { apiAs, browse, isAccessible, shows, signsOut, stage, until, world } from './stage.mjs'

const org = `/o/${world.org}`
const heading = (page, name) => page.getByRole('heading', { name, exact: true })
const button = (within, name) => within.getByRole('button', { name, exact: true })
const isIn = (page) => page.waitForURL(/\/o\/\d+/)

async function types(page, { email, password }) {
  await page.getByLabel('E-mail address').fill(email)
  await page.getByLabel('Password', { exact: true }).fill(password)
  await button(page, 'Sign in').click()
}

/** The secret behind the `#` leaves the address, which the browser tells a moment after the page is drawn. */
const isCleared = (page) => page.waitForURL(({ hash }) => hash === '')

const mails = []
/** The address of the panel in the newest mail with this subject to a person. */
async function mailed(to, subject) {
  const mail = await until(async () => {
    mails.push(...(await stage('mail')).mails)
    return mails.findLast((each) => each.to === to && each.subject === subject)
  }, `the mail “${subject}”`)
  const [, at] = mail.text.match(new RegExp(`${world.base}(/\\S+)`)) ?? assert.fail(mail.text)
  return at
}

test('a wrong password is refused in words, the right one signs in, and a reload changes nothing', async (t) => {
  const page = await browse(t, { at: '/' })
  await heading(page, 'Sign in').waitFor()
  await shows(page, 'sign-in-light')
  await types(page, { ...world.people.OWNER, password: 'not the password' })
  await page.getByRole('alert').first().waitFor()
  assert.equal(await page.getByLabel('E-mail address').inputValue(), world.people.OWNER.email, 'what was typed stays')
  await types(page, world.people.OWNER)
  await isIn(page)
  await page.reload()
  await page.getByRole('button', { name: /^You: / }).waitFor()
  const stored = await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }))
  assert.ok(!stored.includes('mst_'), 'no secret is stored')
  const cookies = await page.context().cookies()
  assert.deepEqual(
    cookies.map(({ name, httpOnly, secure, sameSite }) => ({ name, httpOnly, secure, sameSite })),
    [{ name: '__Host-muster-session', httpOnly: true, secure: true, sameSite: 'Strict' }],
  )
})

test('a page that still asks who is signed in shows who has signed in meanwhile', async (t) => {
  const page = await browse(t, { as: 'ADMIN' })
  const other = await page.context().newPage()
  await other.goto(`${world.base}/sign-in`)
  // The first answer is about who was signed in before, and does not arrive.
  let first = null
  await page.route('**/graphql', async (route) => {
    if (first || !route.request().postData()?.includes('ShellViewer')) return route.continue()
    first = await route.fetch()
  })
  await page.goto(world.base + org)
  await until(() => first, 'the first answer')
  await types(other, world.people.OPERATOR)
  await page.getByRole('button', { name: /^You: .*Otto Operator/ }).waitFor()
})

test('a menu that was opened early stays while a person arrives in their organization', async (t) => {
  const page = await browse(t, { as: 'OPERATOR' })
  const arrive = await holdsBack(page, '**/overview-overview-page.js')
  await page.goto(world.base)
  await page.getByRole('button', { name: /^You: / }).click()
  const entry = page.getByRole('menuitem', { name: 'Sign out' })
  await entry.waitFor()
  arrive()
  await page.getByRole('link', { name: 'Overview', includeHidden: true }).waitFor()
  assert.ok(await entry.isVisible())
})

test('a second factor is set up, asked for, replaced by a recovery code, and removed', async (t) => {
  const ada = world.people.ADMIN
  const page = await browse(t, { at: '/sign-in?next=%2Faccount%3Ftab%3Dsecurity' })
  const dialog = page.getByRole('dialog')
  await types(page, ada)
  await button(page, 'Set up').click()
  await dialog.getByLabel('Your password').fill(ada.password)
  await button(dialog, 'Continue').click()
  await dialog.getByRole('img', { name: 'Code for the authenticator app' }).waitFor()
  const secret = await dialog.getByText(/^[A-Z2-7]{32}$/).textContent()
  await isAccessible(page, 'with the code to scan')
  const first = codeOf(secret)
  await until(() => hasFocus(dialog.getByLabel('Code', { exact: true })), 'the focus to be where the code is typed')
  await page.keyboard.type(first)
  await page.keyboard.press('Enter')
  const shown = await dialog.getByRole('group', { name: 'Recovery codes' }).textContent()
  const recovery = shown.trim().split('\n')
  assert.equal(new Set(recovery).size, 10)
  await isAccessible(page, 'with the recovery codes')
  await hasEntered(dialog)
  await page.keyboard.press('Escape')
  assert.ok(await dialog.isVisible(), 'Esc does not lose them')
  await dialog.getByLabel('I have stored it').check()
  await button(dialog, 'Done').click()
  await button(page, 'New recovery codes').waitFor()

  await signsOut(page)
  await types(page, ada)
  const code = page.getByLabel('Code', { exact: true })
  await code.waitFor()
  await isAccessible(page, 'asked for a code')
  // The sixth digit sends it. A code works once, also if it is still shown.
  await code.fill(first)
  await page.getByText('The code is incorrect or was already used.').waitFor()
  await code.fill('')
  await code.fill(codeOf(secret, 1))
  await isIn(page)

  await signsOut(page)
  await types(page, ada)
  await code.fill(recovery[0].toUpperCase())
  await button(page, 'Continue').click()
  await isIn(page)
  await signsOut(page)
  await types(page, ada)
  await code.fill(recovery[0])
  await button(page, 'Continue').click()
  await page.getByText('The code is incorrect or was already used.').waitFor()
  await code.fill(recovery[1])
  await button(page, 'Continue').click()
  await isIn(page)

  await page.goto(`${world.base}/account?tab=security`)
  await button(page, 'Remove').click()
  await dialog.getByLabel('Your password').fill(ada.password)
  await dialog.getByLabel('Code', { exact: true }).fill(recovery[2])
  await button(dialog, 'Remove').click()
  await button(page, 'Set up').waitFor()
  await signsOut(page)
  await types(page, ada)
  await isIn(page)
})

test('an organization that asks for a second factor opens once it is set up, and changes arrive again', async (t) => {
  const email = 'guarded@example.org'
  await stage(`muster org create --name Guarded --owner-email ${email} --plan ENTERPRISE`)
  const { link } = await stage(`muster session create --link --email ${email}`)
  const page = await browse(t, { fails: ['/graphql'] })
  const shown = (name) => page.getByRole('button', { name: new RegExp(`^Organization:.*${name}$`) })
  await page.goto(link)
  await button(page, 'Sign in').click()
  await isIn(page)
  await shown('Guarded').waitFor()
  const id = Number(page.url().match(/\/o\/(\d+)/)[1])
  const does = async (document, variables) => {
    const { data, codes } = await call(page, document, { o: undefined, ...variables })
    assert.deepEqual(codes, [])
    return data
  }
  // A person asks for one, gets it, and removes it afterwards. The page that is open says so by itself.
  const { beginTotp } = await does('mutation { beginTotp { secret } }')
  const { confirmTotp } = await does('mutation($c: SecretString!) { confirmTotp(code: $c) }', { c: codeOf(beginTotp.secret) })
  await does('mutation($o: Id!) { updateOrganization(orgId: $o, input: { requireSecondFactor: true }) { id } }', { o: id })
  await does('mutation($c: SecretString!) { disableTotp(code: $c) }', { c: confirmTotp[0] })
  await heading(page, 'This organization asks for a second factor').waitFor()
  await page.getByRole('link', { name: 'Set it up' }).click()
  await button(page, 'Set up').click()
  const dialog = page.getByRole('dialog')
  await button(dialog, 'Continue').click()
  const secret = await dialog.getByText(/^[A-Z2-7]{32}$/).textContent()
  await dialog.getByLabel('Code', { exact: true }).fill(codeOf(secret))
  await button(dialog, 'Continue').click()
  await dialog.getByLabel('I have stored it').check()
  await button(dialog, 'Done').click()
  await dialog.waitFor({ state: 'detached' })
  await page.getByRole('button', { name: /^Organization:/ }).click()
  await page.getByRole('menuitem', { name: /^Guarded/ }).click()
  await page.waitForURL(new RegExp(`/o/${id}`))
  await shown('Guarded').waitFor()
  await does('mutation($o: Id!) { updateOrganization(orgId: $o, input: { name: "Well guarded" }) { id } }', { o: id })
  await shown('Well guarded').waitFor()
})

/** At the provider: its own forms. */
async function agrees(page, login) {
  await page.waitForURL(`${world.provider}/**`)
  await page.locator('input[name=login]').fill(login)
  await page.locator('input[name=password]').fill('whatever')
  await button(page, 'Sign-in').click()
  await button(page, 'Continue').click()
  await page.waitForURL(`${world.base}/**`)
}

test('an account at a provider signs in, and leads to where one wanted to go', async (t) => {
  const page = await browse(t, { at: `${org}/agents`, visits: world.provider })
  await button(page, 'Sign in with The peer').click()
  await agrees(page, 'otto')
  await page.waitForURL(new RegExp(`${org}/agents$`))
  await page.getByRole('button', { name: 'You: Otto Operator' }).waitFor()
  const cookies = await page.context().cookies(world.base)
  assert.deepEqual(cookies.map(({ name }) => name), ['__Host-muster-session'], 'what was kept for the way is gone')
  await page.goto(`${world.base}/account?tab=security`)
  const linked = page.getByRole('listitem').filter({ hasText: 'The peer' })
  await linked.getByText(world.people.OPERATOR.email).waitFor()
  await isAccessible(page, 'with a linked account')
  await button(linked, 'Unlink').click()
  await linked.waitFor({ state: 'detached' })
})

test('an address that the provider has not verified lets no one in, nor does an answer that was asked elsewhere', async (t) => {
  const page = await browse(t, { at: '/sign-in', visits: world.provider })
  await button(page, 'Sign in with The peer').click()
  await agrees(page, 'eve')
  await page.getByText('The provider has not verified your e-mail address.').waitFor()
  await isCleared(page)
  await isAccessible(page, 'refused after the way to a provider')
  const other = await browse(t, { at: '/sign-in#code=mst_code_of-somebody-else&state=0123' })
  await other.getByText('This sign-in was not started here. Start again.').waitFor()
})

test('a forgotten password is replaced by the link in a mail, which ends all sessions and works once', async (t) => {
  const { email, password } = world.people.VIEWER
  const other = await browse(t, { at: '/sign-in', fails: ['/graphql'] })
  await types(other, { email, password })
  await isIn(other)
  const page = await browse(t, { at: '/sign-in' })
  await page.getByLabel('E-mail address').fill(email)
  await button(page, 'Forgotten?').click()
  assert.equal(await page.getByLabel('E-mail address').inputValue(), email)
  await isAccessible(page, 'with a forgotten password')
  await button(page, 'Send the link').click()
  await page.getByText('If there is an account for that address, a link is on its way.', { exact: false }).waitFor()
  const at = await mailed(email, 'Set a new password')
  await page.goto(world.base + at)
  await heading(page, 'Set a new password').waitFor()
  await isCleared(page)
  const next = page.getByLabel('New password')
  await next.fill('short')
  await button(page, 'Set password').click()
  await until(() => next.getAttribute('aria-invalid'), 'the refusal')
  await isAccessible(page, 'with a password refused')
  await next.fill('a new battery, correct')
  await button(page, 'Set password').click()
  await heading(page, 'Your new password is set').waitFor()
  await page.getByRole('link', { name: 'Continue' }).click()
  await types(page, { email, password })
  await page.getByRole('alert').first().waitFor()
  await types(page, { email, password: 'a new battery, correct' })
  await isIn(page)
  await other.reload()
  await heading(other, 'Sign in').waitFor()

  const late = await browse(t, { at })
  await late.getByLabel('New password').fill('a third battery')
  await button(late, 'Set password').click()
  await late.getByRole('link', { name: 'Request a new link' }).click()
  await heading(late, 'Forgotten your password?').waitFor()
})

test('an address is confirmed, and changed, by the link in a mail and a press', async (t) => {
  const [email, next] = ['unsure@example.org', 'sure@example.org']
  await stage(`muster org create --name Unsure --owner-email ${email} --plan ENTERPRISE`)
  const { link } = await stage(`muster session create --link --email ${email}`)
  const page = await browse(t)
  await page.goto(link)
  await button(page, 'Sign in').click()
  await isIn(page)
  await page.goto(`${world.base}/account`)
  await page.getByText('Not confirmed').waitFor()
  await isAccessible(page, 'with an address that is not confirmed')
  await button(page, 'Send the link again').click()
  await page.goto(world.base + (await mailed(email, 'Confirm your e-mail address')))
  await button(page, 'Confirm').click()
  await heading(page, 'Your address is confirmed').waitFor()
  await page.goto(`${world.base}/account`)
  await page.getByText('Confirmed', { exact: true }).waitFor()

  await page.getByLabel('New address').fill(next)
  await button(page, 'Change the address').click()
  await page.getByText(`A link is on its way to ${next}.`, { exact: false }).waitFor()
  // The mailbox's owner confirms, also without being signed in; only opening the link does nothing.
  const at = await mailed(next, 'Confirm your e-mail address')
  const mailbox = await browse(t, { at })
  await heading(mailbox, 'Confirm your address').waitFor()
  await page.reload()
  await page.getByText(email, { exact: true }).waitFor()
  await isAccessible(mailbox, 'before an address is confirmed')
  await button(mailbox, 'Confirm').click()
  await heading(mailbox, 'Your address is confirmed').waitFor()
  await page.reload()
  await page.getByText(next, { exact: true }).waitFor()
})

test('another person who signs in over a page whose session has ended gets none of it', async (t) => {
  const page = await browse(t, { as: 'OPERATOR', fails: ['/graphql'] })
  let isFollowed = false
  page.on('websocket', (socket) =>
    socket.on('framereceived', ({ payload }) => {
      isFollowed ||= String(payload).includes('RESYNC')
    }),
  )
  await page.goto(`${world.base}${org}/agents`)
  await until(() => isFollowed, 'changes to arrive')
  await page.context().clearCookies()
  const refused = page.waitForResponse((answer) => answer.request().postData()?.includes('ShellViewer') ?? false)
  await apiAs('OPERATOR', 'mutation { changeName(name: "Otto O.") { id } }', { org: undefined })
  await refused
  const dialog = page.getByRole('dialog', { name: 'Your session has ended' })
  await dialog.waitFor()
  await types(dialog, world.people.OWNER)
  await page.waitForURL(({ pathname }) => !pathname.endsWith('/agents'))
})

test('two tabs of one person whose session has ended both go on once one of them has signed in', async (t) => {
  const page = await browse(t, { as: 'OPERATOR', at: `${org}/agents`, fails: ['/graphql'] })
  const other = await page.context().newPage()
  await other.goto(`${world.base}${org}/agents`)
  const tabs = [page, other]
  const asked = (tab) => tab.getByRole('dialog', { name: 'Your session has ended' })
  for (const tab of tabs) await tab.getByRole('button', { name: /^You: / }).waitFor()
  await apiAs('OPERATOR', 'mutation { revokeOtherSessions }', { org: undefined })
  for (const tab of tabs) await asked(tab).waitFor()
  await types(asked(page), world.people.OPERATOR)
  for (const tab of tabs) await asked(tab).waitFor({ state: 'detached' })
  await apiAs('OPERATOR', 'mutation { changeName(name: "Otto Once") { id } }', { org: undefined })
  for (const tab of tabs) await tab.getByRole('button', { name: 'You: Otto Once' }).waitFor()
  for (const tab of tabs) assert.equal(await asked(tab).count(), 0)
})

test('a tab goes on when the same person signs in by a link in another', async (t) => {
  const page = await browse(t, { as: 'OPERATOR', fails: ['/graphql'] })
  const socket = page.waitForEvent('websocket')
  await page.goto(`${world.base}${org}/agents`)
  const closed = (await socket).waitForEvent('close')
  const { link } = await stage(`muster session create --link --email ${world.people.OPERATOR.email}`)
  const other = await page.context().newPage()
  await other.goto(link)
  await button(other, 'Sign in').click()
  await isIn(other)
  await closed
  await apiAs('OPERATOR', 'mutation { changeName(name: "Otto Twice") { id } }', { org: undefined })
  for (const tab of [page, other]) await tab.getByRole('button', { name: 'You: Otto Twice' }).waitFor()
  assert.equal(await page.getByRole('dialog').count(), 0)
})
