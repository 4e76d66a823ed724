import assert from 'node:assert/strict'
import { test } from 'node:test'
import { browse, isAccessible, shows, world } from './stage.mjs'

test('a person signs in with address and password, and stays signed in after a reload', async (t) => {
  const page = await browse(t, { at: '/' })
  await page.getByRole('heading', { name: /sign in/i }).waitFor()
  await isAccessible(page, 'at sign-in')
  await shows(page, 'sign-in-light')
  const { email, password } = world.people.OWNER
  await page.getByLabel(/e-?mail/i).fill(email)
  await page.getByLabel('Password', { exact: true }).fill(password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.waitForURL(/\/o\/\d+/)
  await page.reload()
  await page.waitForURL(/\/o\/\d+/)
  const stored = await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }))
  assert.ok(!stored.includes('mst_'), 'no secret is stored')
  const cookies = await page.context().cookies()
  assert.deepEqual(cookies.map(({ httpOnly, sameSite }) => ({ httpOnly, sameSite })), [{ httpOnly: true, sameSite: 'Strict' }])
})

test('a wrong password is refused in words, and what was typed stays', async (t) => {
  const page = await browse(t, { at: '/sign-in' })
  await page.getByLabel(/e-?mail/i).fill(world.people.OWNER.email)
  await page.getByLabel('Password', { exact: true }).fill('not the password')
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('alert').first().waitFor()
  assert.equal(await page.getByLabel(/e-?mail/i).inputValue(), world.people.OWNER.email)
})
