// An installation without people: the page whose address is in the log makes the first person and organization.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { browse, isAccessibleInBoth, shows, stage, until } from './stage.mjs'

const PAGE = /(http:\/\/127\.0\.0\.1:\d+)\/first-start#code=\w+/

test('the code of the log makes the first person and organization, once', async (t) => {
  const { machine } = await stage('types MUSTER_LISTEN=127.0.0.1:0 muster serve 2>&1')
  const said = async () => (await stage(`said ${machine}`)).said.match(PAGE)
  const [link, base] = await until(said, 'the address of the page', 60)
  const submit = (page) => page.getByRole('button', { name: 'Set up' }).click()

  // Without the code: signing in leads here, and the code is asked for.
  const guest = await browse(t, { base, at: '/sign-in' })
  await guest.getByRole('heading', { name: 'Set up Muster' }).waitFor()
  assert.equal(new URL(guest.url()).pathname, '/first-start')
  await isAccessibleInBoth(guest, 'with the code asked for')
  await submit(guest)
  await guest.getByText('This can’t be empty.').first().waitFor()
  await guest.getByLabel('Code').fill('mst_code_of-someone-else')
  const fills = async (page) => {
    await page.getByLabel('Your name').fill('Ada Lovelace')
    await page.getByLabel('E-mail address').fill('ada@example.org')
    await page.getByLabel('Password').fill('correct horse battery')
    await page.getByLabel('Name of your organization').fill('Acme')
  }
  await fills(guest)
  await submit(guest)
  await guest.getByText('This is not the code.').waitFor()

  const page = await browse(t, { base })
  await page.goto(link)
  await page.getByRole('heading', { name: 'Set up Muster' }).waitFor()
  await until(() => new URL(page.url()).hash === '', 'the code to leave the address')
  assert.equal(await page.getByLabel('Code').count(), 0, 'the link has it')
  await fills(page)
  await page.getByLabel('Password').fill('short')
  await submit(page)
  await page.getByText(/must have at least 8 characters/).waitFor()
  await isAccessibleInBoth(page, 'with a refused password')
  await shows(page, 'first-start')
  await page.getByLabel('Password').fill('correct horse battery')
  await submit(page)
  await page.waitForURL(/\/o\/\d+$/)
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await page.getByRole('button', { name: /Ada Lovelace/ }).waitFor()

  // Another one was too late, also with the page open.
  await submit(guest)
  await guest.getByRole('heading', { name: 'Muster is set up' }).waitFor()
  await isAccessibleInBoth(guest, 'where it is set up')
  await guest.getByRole('link', { name: 'Sign in' }).click()
  await guest.getByRole('heading', { name: 'Sign in', exact: true }).waitFor()

  await guest.close()
  await page.close()
  await stage(`interrupt ${machine}`)
})
