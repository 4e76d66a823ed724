// An invitation's link: only its holder learns whether the address has an account, and only when it is used.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { codeOf, fresh, row } from './acts.mjs'
import { apiAs, browse, isAccessible, stage, world } from './stage.mjs'

/** The address of an invitation, as the operator prints it. */
async function invited(email) {
  const name = fresh('Guests')
  const { id } = await stage(`muster org create --name ${name} --owner-email ${world.people.OWNER.email} --plan ENTERPRISE`)
  const { link } = await stage(`muster member invite --org ${id} --role VIEWER --link --email ${email}`)
  const { pathname, hash } = new URL(link, world.base)
  return { id, name, at: pathname + hash }
}

test('a person without an account makes one, and is in', async (t) => {
  const email = `${fresh('new')}@example.org`
  const { id, name, at } = await invited(email)
  const page = await browse(t, { at })
  await page.getByText(`An administrator invites you (${email}) to ${name} as Viewer.`).waitFor()
  await page.getByRole('button', { name: 'Continue' }).waitFor()
  assert.equal(await page.getByLabel(/password/i).count(), 0, 'nothing is said about accounts before the link is used')
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByLabel('Your name').fill('Nora New')
  await isAccessible(page, 'with the form of a new account')
  await page.getByLabel('New password').fill('short')
  await page.getByRole('button', { name: 'Create the account and join' }).click()
  await page.getByRole('alert').first().waitFor()
  await page.getByLabel('New password').fill('correct horse battery')
  await page.getByRole('button', { name: 'Create the account and join' }).click()
  await page.waitForURL(new RegExp(`/o/${id}$`))
  await page.getByText('You have joined as Viewer').waitFor()
  await page.getByRole('button', { name: /Nora New/ }).waitFor()
})

test('a person with an account gives only its password; one who is signed in gives nothing', async (t) => {
  const { email, password } = world.people.ADMIN
  const first = await invited(email)
  const page = await browse(t, { at: first.at })
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByText(`${email} has an account already.`).waitFor()
  assert.equal(await page.getByLabel('Your name').count(), 0)
  await isAccessible(page, 'with the password of an account asked')
  await page.getByLabel('Password').fill('not this one')
  await page.getByRole('button', { name: 'Join', exact: true }).click()
  await page.getByText('That is not the password of this account.').waitFor()
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Join', exact: true }).click()
  await page.waitForURL(new RegExp(`/o/${first.id}$`))

  const second = await invited(email)
  const inside = await browse(t, { as: 'ADMIN', at: second.at })
  await inside.getByRole('button', { name: 'Continue' }).click()
  await inside.waitForURL(new RegExp(`/o/${second.id}$`))
})

test('a person with a second factor is asked for it next, and is in, also where another one was signed in', async (t) => {
  const { email, password, name } = world.people.VIEWER
  const begin = 'mutation($p: SecretString!) { beginTotp(password: $p) { secret } }'
  const { beginTotp } = await apiAs('VIEWER', begin, { org: undefined, p: password })
  const confirm = 'mutation($c: SecretString!) { confirmTotp(code: $c) }'
  const { confirmTotp } = await apiAs('VIEWER', confirm, { org: undefined, c: codeOf(beginTotp.secret) })
  for (const [round, as] of ['ADMIN', undefined].entries()) {
    const { id, at } = await invited(email)
    const page = await browse(t, { as, at })
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByLabel('Password').fill(password)
    await page.getByRole('button', { name: 'Join', exact: true }).click()
    await page.getByLabel('Code', { exact: true }).fill(confirmTotp[round])
    await isAccessible(page, 'asked for a code after joining')
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.waitForURL(new RegExp(`/o/${id}$`))
    await page.getByRole('button', { name: `You: ${name}` }).waitFor()
  }
})

test('as long as no mail has gone out, the list says how to hand the link over', async (t) => {
  const email = `${fresh('by-hand')}@example.org`
  const page = await browse(t, { as: 'OWNER', at: `/o/${world.org}/members?open=new` })
  await page.getByRole('dialog').getByLabel('E-mail address').fill(email)
  await page.getByRole('dialog').getByRole('button', { name: 'Invite' }).click()
  const way = row(page, email).getByRole('button', { name: 'Hand over the link' })
  await way.waitFor()
  await way.click()
  const line = page.getByRole('dialog').getByLabel('the line that prints the link', { exact: true })
  assert.equal(await line.textContent(), `muster member invite --org ${world.org} --role OPERATOR --link --email ${email}`)
  await isAccessible(page, 'with the way to hand it over')
})
