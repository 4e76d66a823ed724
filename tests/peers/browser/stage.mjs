// What the tests of the panel have in common: the browser, the people, and the stage that `tests/it/panel/mod.rs` sets.

import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { after } from 'node:test'
import { chromium } from 'playwright-core'

/** `base`, `org`, `token`, `agent`, `conversation`, `people`: by role, `{ email, password, name }`; for sign_in, `provider`. */
export const world = JSON.parse(process.env.MUSTER_WORLD)

const KEPT = new URL('../../../target/panel/', import.meta.url).pathname
const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]()

const PROGRAM = {
  executablePath: process.env.CHROME_PATH ?? '/usr/bin/chromium-headless-shell',
  // Chromium's own sandbox needs rights that a container lacks. The pages are ours. A machine that runs tests has no graphics
  // card: an emulated one only costs time.
  args: ['--no-sandbox', '--disable-gpu', '--disable-software-rasterizer'],
}
let launched
const browser = () => (launched ??= chromium.launch(PROGRAM))

/** Another browser, with its own folder, whose debugger others reach at this port. It ends with its context. */
export const launch = ({ folder, port }) =>
  chromium.launchPersistentContext(folder, { ...PROGRAM, args: [...PROGRAM.args, `--remote-debugging-port=${port}`] })

after(async () => {
  await (await launched)?.close()
  process.stdin.destroy()
})

/** Has the machine do something, and answers what it says. */
export async function stage(what) {
  process.stdout.write(`\n@stage ${what}\n`)
  const { value } = await answers.next()
  const said = JSON.parse(value)
  assert.ok(!said.error, said.error)
  return said
}

/** Calls the service with the token, and answers the data. */
export async function api(query, variables = {}, base = world.base, token = world.token) {
  const answer = await fetch(`${base}/graphql`, {
    method: 'POST',
    headers: { ...(token && { authorization: `Bearer ${token}` }), 'content-type': 'application/json' },
    body: JSON.stringify({ query, variables: { org: world.org, ...variables } }),
  })
  const { data, errors } = await answer.json()
  assert.ok(!errors, JSON.stringify(errors))
  return data
}

/** Calls the service as a person, for what no token may do. */
export async function apiAs(role, query, variables) {
  const { email, password } = world.people[role]
  const entered = 'mutation($email: String!, $password: SecretString!) { signIn(email: $email, password: $password) { accessToken } }'
  const { signIn } = await api(entered, { email, password, org: undefined }, world.base, null)
  return api(query, variables, world.base, signIn.accessToken)
}

/** Answers what `look` finds, as soon as it finds something. */
export async function until(look, what = 'it', seconds = 30) {
  for (let n = 0; n < seconds * 20; n += 1) {
    const found = await look()
    if (found) return found
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  assert.fail(`waited for ${what}`)
}

/**
 * A page of a person (a role of `world.people`) or of a visitor, with a browser's own storage.
 * `fails`: parts of the addresses of requests that fail on purpose. `visits`: the origin of another site that the page goes to,
 * and whose pages are not judged.
 */
export async function browse(t, { as, theme = 'light', width = 1280, height = 800, at, base = world.base, fails = [], visits, ...rest } = {}) {
  const context = await (await browser()).newContext({
    colorScheme: theme,
    viewport: { width, height },
    reducedMotion: 'reduce',
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
    ...rest,
  })
  t.after(async () => {
    // A request may still be answered by a test's own route when nothing waits for the answer.
    await Promise.all(context.pages().map((page) => page.unrouteAll({ behavior: 'ignoreErrors' })))
    await context.close()
  })
  if (as) await signIn(context, world.people[as], base)
  const page = await context.newPage()
  page.setDefaultTimeout(30_000)
  guard(t, page, { base, fails, visits })
  if (at !== undefined) await page.goto(base + at)
  return page
}

/** Signs a browser in without its pages. */
export async function signIn(context, { email, password }, base = world.base) {
  const answer = await context.request.post(`${base}/graphql`, {
    headers: { origin: base },
    data: {
      query: 'mutation($email: String!, $password: SecretString!) { signIn(email: $email, password: $password, cookie: true) { user { id } } }',
      variables: { email, password },
    },
  })
  const { errors } = await answer.json()
  assert.ok(!errors, JSON.stringify(errors))
}

/** Pages that are being signed out. What they were still reading is refused with 401, which the console says. */
const leaving = new WeakSet()

/** Signs out by the menu of a page. */
export async function signsOut(page) {
  leaving.add(page)
  await page.getByRole('button', { name: /^You: / }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor()
}

function guard(t, page, { base, fails, visits }) {
  const wrong = []
  const isThere = (address) => visits !== undefined && address.startsWith(`${visits}/`)
  const expected = (address) => isThere(address) || fails.some((part) => address.includes(part))
  page.on('pageerror', (error) => wrong.push(`not caught: ${error.stack ?? error}`))
  page.on('console', (message) => {
    // A lost socket is reported at the script that opened it, and names its address in the text.
    if (message.type() !== 'error' || expected(message.location().url) || expected(message.text())) return
    if (leaving.has(page) && /status of 401/.test(message.text())) return
    wrong.push(`the console says: ${message.text()} (${message.location().url})`)
  })
  page.on('request', (request) => {
    const address = request.url()
    const ours = [base, base.replace(/^http/, 'ws'), 'data:', 'blob:'].some((start) => address.startsWith(start))
    if (!ours && !isThere(address) && !isThere(request.frame().url())) wrong.push(`it asks ${address}`)
  })
  t.after(() => assert.deepEqual(wrong, [], 'the page does nothing wrong'))
}

/** Counts the times that a page is loaded from now on: `reloads(page)()` is how many. */
export function reloads(page) {
  let count = 0
  page.on('load', () => {
    count += 1
  })
  return () => count
}

const WCAG = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']
const AXE = readFileSync(new URL(import.meta.resolve('axe-core/axe.min.js')), 'utf8')

/** What axe-core finds on a page, in which it stays until the page is reloaded: it is more than half a megabyte. */
async function violations(page, options) {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(AXE)
  // All the rules run. What passes is only not described, element by element, which takes as long again.
  const run = async (options) => (await window.axe.run(document, options)).violations
  return page.evaluate(run, { ...options, resultTypes: ['violations'] })
}

async function findsNothing(page, options, where) {
  const found = (await violations(page, options)).flatMap(({ id, nodes }) =>
    nodes.map((node) => `${id}: ${node.target} ${node.failureSummary ?? ''}`),
  )
  assert.deepEqual(found, [], `axe finds nothing ${where}`)
}

/** axe-core finds nothing to complain about, but for the rules in `except`. */
export async function isAccessible(page, where = '', except = []) {
  const rules = Object.fromEntries(except.map((rule) => [rule, { enabled: false }]))
  await findsNothing(page, { runOnly: { type: 'tag', values: WCAG }, rules }, where)
}

/** The same in light and dark: only colours differ between the two. Leaves the page light. */
export async function isAccessibleInBoth(page, where = '', except = []) {
  await isAccessible(page, `${where}, light`, except)
  const contrast = { runOnly: { type: 'rule', values: ['color-contrast'] } }
  await inDark(page, () => findsNothing(page, contrast, `${where}, dark`))
}

/** Does something while the page is dark. */
export async function inDark(page, act) {
  await turns(page, 'dark')
  await act()
  await turns(page, 'light')
}

/** Colours change within a frame or two, and are then measured. */
async function turns(page, theme) {
  await page.emulateMedia({ colorScheme: theme })
  await page.locator(`html[data-theme="${theme}"]`).waitFor()
  await page.evaluate(async () => {
    for (let n = 0; n < 3; n += 1) await new Promise(requestAnimationFrame)
  })
}

/** Does something with each, and fails in the end with all that went wrong: one run tells everything. */
export async function forEach(all, act) {
  const wrong = []
  for (const each of all) await act(each).catch((error) => wrong.push(`${each.name}: ${error.message}`))
  assert.deepEqual(wrong, [])
}

const pictures = async (page, name) =>
  keeps(`${name}.png`, await page.screenshot({ animations: 'disabled', caret: 'hide' }))

/** Writes a screenshot of what a test has just done, if MUSTER_PICTURES is set: it takes as long as a page. */
export async function shows(page, name) {
  if (process.env.MUSTER_PICTURES) await pictures(page, name)
}

/** Writes screenshots of a page in light and in dark, in each run. */
export async function showsBoth(page, name) {
  await pictures(page, `${name}-light`)
  await inDark(page, () => pictures(page, `${name}-dark`))
}

/** Writes a file to target/panel/. */
export function keeps(name, content) {
  mkdirSync(KEPT, { recursive: true })
  writeFileSync(KEPT + name, content)
}
