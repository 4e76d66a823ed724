import assert from 'node:assert/strict'
import { test } from 'node:test'
import { opens, settled } from './acts.mjs'
import { spoil, turned, unhurt } from './hostile.mjs'
import { flaws } from './looks.mjs'
import { PAGES, records } from './pages.mjs'
import { api, apiAs, browse, forEach, until, world } from './stage.mjs'

// `browse` fails on any request to elsewhere and on any breach of the policy.

/** What stands beside lists, by its address. */
async function peeks({ answered, dismissed, used, outside, hook }) {
  const { policyHistory } = await apiAs('OWNER', 'query($org: Id!) { policyHistory(orgId: $org, page: 1, limit: 1) { data { id } } }')
  const { turns, auditLog } = await api(
    `query($org: Id!, $id: Id!) {
      turns(orgId: $org, conversationId: $id, page: 1, limit: 1) { data { id } }
      auditLog(orgId: $org, page: 1, limit: 1, operation: "updateAgent") { data { id } }
    }`,
    { id: used },
  )
  const beside = [
    `/approvals?peek=${records.approval}`,
    `/approvals?peek=${answered}`,
    `/approvals?peek=${dismissed}`,
    `/conversations/${outside}?panel=details`,
    `/agents?tab=images&peek=${records.image}`,
    `/agents/${world.agent}?tab=turns&turn=${turns.data[0].id}`,
    `/agents/${world.agent}?tab=revisions&revision=1`,
    `/channels?peek=${records.channel}`,
    `/channels?peek=${hook}`,
    `/credentials?peek=${records.credential}`,
    `/mcp-servers?peek=${records.mcpServer}`,
    `/skills?peek=${records.skill}`,
    `/tokens?peek=${records.token}`,
    `/policies?tab=history&peek=${policyHistory.data[0].id}`,
    `/audit?entry=${auditLog.data[0].id}`,
  ]
  return beside.map((at) => ({ name: at, at: `/o/${world.org}${at}`, isBeside: true }))
}

// Where names of records stand in lists and titles: there, what hides in them is marked.
const MARKED = [
  'approval', 'conversations', 'conversation', 'contacts', 'agents', 'images', 'agent', 'servers', 'server', 'channels',
  'credentials', 'mcp-servers', 'skills', 'members', 'tokens', 'policies-history', 'settings-money', 'settings-events', 'audit',
]

async function isWell(page, when) {
  assert.deepEqual([...(await flaws(page)), ...(await turned(page))], [], when)
  await unhurt(page)
}

/** The tools that the agent has called, each of which is folded in the conversation. */
const CALLED = ['ask_person', 'send_file']

/** Unfolds so many, one after another, until none is folded. */
async function unfolds(page, count) {
  // Those of tools have a sign; the fields of what they were given are open by themselves.
  const folds = page.getByRole('log').locator('details:has(> summary svg)')
  const folded = folds.and(page.locator('details:not([open])'))
  await until(async () => (await folds.count()) === count, `${count} calls of tools`)
  for (let left = count - 1; left >= 0; left -= 1) {
    await folded.first().locator('> summary').click()
    await until(async () => (await folded.count()) === left, `all but ${left} to be open`)
  }
}

test('a whole organization of hostile names and texts is text on every page and beside every list', async (t) => {
  const made = await spoil()
  const beside = await peeks(made)
  for (const [width, pages] of [[375, [...PAGES, ...beside]], [1280, beside]]) {
    const page = await browse(t, { as: 'OWNER', width, fails: ['/graphql'] })
    await forEach(pages, async (each) => {
      await opens(page, each)
      if (each.isBeside) await page.getByRole('complementary').first().waitFor({ timeout: 5_000 })
      await isWell(page, `at ${width}`)
      if (MARKED.includes(each.name)) await page.locator('#main mark').getByText('U+200B').first().waitFor()
    })
  }
  const page = await browse(t, { as: 'OWNER', width: 375, at: `/o/${world.org}/conversations/${made.used}` })
  await unfolds(page, CALLED.length)
  await page.getByRole('region', { name: 'Result' }).first().getByText('U+202E').first().waitFor()
  await isWell(page, 'with the tools unfolded')
  await page.getByRole('button', { name: 'Find anything' }).click()
  await page.getByRole('combobox').first().fill('<img src')
  await page.getByRole('option').nth(3).waitFor()
  await settled(page)
  await isWell(page, 'in what is found')
})
