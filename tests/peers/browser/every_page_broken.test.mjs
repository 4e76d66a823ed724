import assert from 'node:assert/strict'
import { test } from 'node:test'
import { opens } from './acts.mjs'
import { PAGES } from './pages.mjs'
import { browse, forEach, isAccessibleInBoth, shows, until } from './stage.mjs'

// How the names begin of what the frame around every page reads. Without it there is no page.
const FRAME = 'Shell'
// They show what the frame has read.
const READ_NOTHING = ['account', 'account-appearance', 'help', 'nowhere']
const SAYS_SO = /could not be shown|could not be read|The service failed/

/** Each query of a page is answered by an error of GraphQL, in a 200; nothing else changes. */
async function breaks(page) {
  let broken = true
  await page.route('**/graphql', async (route) => {
    const { query = '', operationName } = route.request().postDataJSON() ?? {}
    if (!broken || !query.trimStart().startsWith('query') || operationName?.startsWith(FRAME)) return route.continue()
    const extensions = { code: 'INTERNAL', requestId: 'a1b2c3' }
    return route.fulfill({ json: { data: null, errors: [{ message: 'The service failed', extensions }] } })
  })
  return () => {
    broken = false
  }
}

test('every page says what could not be read, and what to do, light and dark', async (t) => {
  const page = await browse(t, { as: 'OWNER' })
  await breaks(page)
  await forEach(PAGES, async (each) => {
    await opens(page, each)
    assert.equal(await page.getByText('This page crashed').count(), 0, `${each.name} does not fail`)
    const says = async () => SAYS_SO.test(await page.getByRole('main').innerText())
    if (!READ_NOTHING.includes(each.name)) await until(says, `${each.name} to say so`, 10)
    await isAccessibleInBoth(page, `on ${each.name}, broken`)
    await shows(page, `${each.name}-broken`)
  })
})

test('trying again shows the page, and nothing has to be reloaded', async (t) => {
  const page = await browse(t, { as: 'OWNER' })
  const mends = await breaks(page)
  await opens(page, PAGES.find(({ name }) => name === 'skills'))
  const again = page.getByRole('button', { name: 'Try again' })
  await again.waitFor()
  mends()
  await again.press('Enter')
  await page.getByRole('row', { name: /tone-of-voice/ }).waitFor()
})
