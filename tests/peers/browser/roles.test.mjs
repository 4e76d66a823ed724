// Pages by roles. What a role may do is offered, and the service does it. What it may not is grey and says why, or is not shown
// and says why; and the service refuses the same call. A row names the lowest role that sees the page, and the lowest that may.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apart, call, escapes, opens, row } from './acts.mjs'
import { apiAs, browse, forEach, world } from './stage.mjs'

const org = `/o/${world.org}`
const ROLES = ['VIEWER', 'OPERATOR', 'ADMIN']
const reaches = (role, lowest) => ROLES.indexOf(role) >= ROLES.indexOf(lowest)

const TABLE = [
  {
    name: 'agents', at: '/agents', may: 'OPERATOR', control: 'New agent', needs: 'agent.create',
    does: 'createAgent(orgId: $o, input: { name: $name, serverId: $server }) { id }',
  },
  {
    name: 'images', at: '/agents?tab=images', may: 'ADMIN', control: 'New image', needs: 'image.edit',
    does: 'createImage(orgId: $o, input: { name: $name, reference: "example/opencode:1" }) { id }',
  },
  {
    name: 'servers', at: '/servers', may: 'ADMIN', control: 'New server', needs: 'server.create',
    does: 'createServer(orgId: $o, input: { name: $name }) { id }',
  },
  {
    name: 'channels', at: '/channels', may: 'OPERATOR', control: 'New channel', needs: 'agent.edit',
    does: 'createChannel(orgId: $o, input: { name: $name, agentId: $agent, transport: CALENDAR }) { id }',
  },
  {
    name: 'credentials', at: '/credentials', may: 'OPERATOR', control: 'New credential', needs: 'credential.edit',
    does: 'createCredential(orgId: $o, input: { name: $name, kind: "api-key", fields: [] }) { id }',
  },
  {
    name: 'MCP servers', at: '/mcp-servers', may: 'OPERATOR', control: 'New MCP server', needs: 'mcp.create',
    does: 'createMcpServer(orgId: $o, input: { name: $name, transport: HTTP, url: "https://example.com" }) { id }',
  },
  {
    name: 'skills', at: '/skills', may: 'OPERATOR', control: 'New skill', needs: 'skill.create',
    does: 'createSkill(orgId: $o, input: { name: $name, content: "" }) { id }',
  },
  {
    name: 'members', at: '/members', may: 'ADMIN', control: 'Invite', needs: 'member.edit',
    does: 'inviteMember(orgId: $o, input: { email: $email, role: VIEWER }) { id }',
  },
  {
    name: 'tokens', at: '/tokens', sees: 'ADMIN', may: 'ADMIN', control: 'New token', needs: 'token.edit',
    does: 'createServiceToken(orgId: $o, input: { name: $name, permissions: ["agent.view"] }) { id }',
    reads: 'serviceTokens(orgId: $o, page: 1, limit: 1) { total }',
  },
  {
    name: 'settings', at: '/settings', may: 'ADMIN', control: 'Why?', needs: 'organization.edit',
    does: 'updateOrganization(orgId: $o, input: { taxCity: $name }) { id }',
  },
  {
    name: 'network', at: '/settings?tab=network', may: 'ADMIN', control: 'Allow a host', needs: 'network.edit',
    does: 'allowHost(orgId: $o, input: { host: $host }) { id }',
  },
  { name: 'policies', at: '/policies', sees: 'ADMIN', reads: 'policyHistory(orgId: $o, page: 1, limit: 1) { total }' },
  { name: 'audit', at: '/audit', sees: 'ADMIN', reads: 'auditLog(orgId: $o, page: 1, limit: 1) { total }' },
]

/** The pages whose address opens the form. */
const FORMS = new Set([
  '/agents', '/agents?tab=images', '/servers', '/channels', '/credentials', '/mcp-servers', '/skills', '/members',
])

/** A document with those of the variables that it uses. */
function documentOf(kind, field) {
  const types = { $o: 'Id!', $name: 'String!', $email: 'String!', $host: 'String!', $server: 'Id!', $agent: 'Id!' }
  const used = Object.entries(types).filter(([name]) => new RegExp(`\\${name}\\b`).test(field))
  return `${kind}(${used.map(([name, type]) => `${name}: ${type}`).join(', ')}) { ${field} }`
}

/** Whether the service does it for who is signed in in the page. */
async function isDone(page, kind, field, role) {
  const { data } = await call(page, 'query($o: Id!, $a: Id!) { agent(orgId: $o, id: $a) { serverId } }', { a: world.agent })
  const word = role.toLowerCase()
  const variables = {
    name: `of-${word}`, email: `by-${word}@example.org`, host: `${word}.example.com`, server: data.agent.serverId, agent: world.agent,
  }
  const { codes } = await call(page, documentOf(kind, field), variables)
  assert.ok(codes.length === 0 || (codes.length === 1 && codes[0] === 'PERMISSION_DENIED'), `${field}: ${codes}`)
  return codes.length === 0
}

const why = (page) => page.getByRole('dialog', { name: 'You may not do this' })

/** What stands on a page for a role. */
async function looks(page, role, { at, route, sees = 'VIEWER', may, control, needs }) {
  await opens(page, { route, at: org + at })
  if (!reaches(role, sees)) {
    await page.getByRole('heading', { name: 'You may not see this' }).waitFor()
    assert.equal(await page.getByRole('grid').count(), 0)
    return
  }
  if (!control) return page.getByRole('grid').first().waitFor()
  const button = page.getByRole('button', { name: control, exact: true }).first()
  if (reaches(role, may)) {
    if (control === 'Why?') {
      await page.getByRole('textbox').first().waitFor()
      assert.equal(await button.count(), 0, 'there is nothing to ask')
      return
    }
    await button.waitFor()
    assert.equal(await button.getAttribute('aria-disabled'), null, `${control} is offered`)
    return
  }
  await button.press('Enter')
  await why(page).getByText(needs, { exact: true }).first().waitFor()
  await escapes(page, why(page))
  if (!FORMS.has(at)) return
  // The form's address explains as its button does.
  await page.goto(`${world.base}${org}${at}${at.includes('?') ? '&' : '?'}open=new`)
  await why(page).getByText(needs, { exact: true }).first().waitFor()
  assert.equal(await page.getByRole('dialog').count(), 1, 'no form is open')
  await escapes(page, why(page))
}

for (const role of ROLES) {
  test(`${role}: each page offers what the role may, says why it may not, and the service agrees`, async (t) => {
    const page = await browse(t, { as: role, fails: ['/graphql', '/export/'] })
    await opens(page, { route: '/', at: org })
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    const pages = TABLE.map((each) => ({ ...each, route: each.at.split('?')[0] }))
    await forEach(apart(pages), async (each) => {
      await looks(page, role, each)
      const { sees = 'VIEWER', may, does, reads } = each
      if (does) assert.equal(await isDone(page, 'mutation', does, role), reaches(role, may), does)
      if (reads) assert.equal(await isDone(page, 'query', reads, role), reaches(role, sees), reads)
    })
    const exported = await page.evaluate(async (path) => (await fetch(path)).status, `/export/audit/${world.org}`)
    assert.equal(exported, reaches(role, 'ADMIN') ? 200 : 403)

    // Everyone's own account, and no other.
    await opens(page, { route: '/account', at: '/account?tab=security' })
    await page.getByText('This one').waitFor()
    const { sessions } = await apiAs('OWNER', '{ sessions { id } }')
    const ends = 'mutation($id: Id!) { revokeSession(id: $id) }'
    assert.deepEqual((await call(page, ends, { id: sessions[0].id })).codes, ['NOT_FOUND'])
  })
}

test('an ADMIN gives no role above their own, and takes none', async (t) => {
  const page = await browse(t, { as: 'ADMIN', at: `${org}/members`, fails: ['/graphql'] })
  const olives = row(page, 'Olive Owner')
  assert.equal(await olives.getByRole('button', { name: /^Role of/ }).count(), 0)
  await olives.getByRole('button', { name: 'Actions for Olive Owner' }).click()
  assert.equal(await page.getByRole('menuitem', { name: 'Remove' }).getAttribute('aria-disabled'), 'true')
  await escapes(page, page.getByRole('menu'))
  await row(page, 'Otto Operator').getByRole('button', { name: /^Role of/ }).click()
  await page.getByRole('menuitem', { name: /^Admin/ }).waitFor()
  assert.equal(await page.getByRole('menuitem', { name: /^Owner/ }).count(), 0)
  await escapes(page, page.getByRole('menu'))
  await page.getByRole('button', { name: 'Invite' }).click()
  await page.getByRole('radio', { name: /^Admin/ }).waitFor()
  assert.equal(await page.getByRole('radio', { name: /^Owner/ }).count(), 0)
  const { data } = await call(page, 'query($o: Id!) { members(orgId: $o, page: 1, limit: 50) { data { userId role name } } }')
  const olive = data.members.data.find(({ name }) => name === 'Olive Owner')
  assert.equal(olive.role, 'OWNER')
  const { codes } = await call(
    page,
    `mutation($o: Id!, $u: Id!) {
      updateMember(orgId: $o, userId: $u, input: { role: VIEWER }) { role }
      removeMember(orgId: $o, userId: $u)
      inviteMember(orgId: $o, input: { email: "peer@example.org", role: OWNER }) { id }
    }`,
    { u: olive.userId },
  )
  assert.deepEqual(codes, Array(3).fill('PERMISSION_DENIED'))
})
