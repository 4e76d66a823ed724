// The one table of what the panel shows: every address of its router, with every tab. The tests that look at all pages
// read it, and `table.mjs` compares it with the panel's source, so that a page that is added and not listed fails.
import { apart, asks, record } from './acts.mjs'
import { api, apiAs, stage, world } from './stage.mjs'

/** What the pages of the records need, made once for each script. */
async function furnish() {
  const made = await api(
    `mutation($org: Id!, $agent: Id!) {
      skill: createSkill(orgId: $org, input: { name: "tone-of-voice", description: "How to answer people", content: "Be short and kind." }) { id }
      credential: createCredential(orgId: $org, input: { name: "Help desk", kind: "api-key", description: "Tickets of the shop", fields: [{ label: "key", value: "sesame" }] }) { id }
      mcpServer: createMcpServer(orgId: $org, input: { name: "tickets", transport: HTTP, url: "https://tickets.example.com/mcp" }) { id }
      image: createImage(orgId: $org, input: { name: "OpenCode", reference: "example/opencode:1" }) { id }
      modelCredential: createModelCredential(orgId: $org, input: { name: "House key", provider: "mistral", isDefault: true, secret: "sesame" }) { id }
      channel: createChannel(orgId: $org, input: { name: "Shop calendar", agentId: $agent, transport: CALENDAR }) { id }
      backup: backupAgent(orgId: $org, id: $agent) { id }
    }`,
    { agent: world.agent },
  )
  // A token may neither invite users nor do what the OWNER does below.
  await stage(`muster member invite --org ${world.org} --email guest@example.org --role VIEWER --link`)
  await api(
    `mutation($org: Id!, $agent: Id!, $skill: Id!) {
      updateSkill(orgId: $org, id: $skill, input: { content: "Be short, kind and exact." }) { id }
      updateAgent(orgId: $org, id: $agent, input: { role: "Harbour master" }) { id }
    }`,
    { agent: world.agent, skill: made.skill.id },
  )
  const { token, endpoint } = await apiAs(
    'OWNER',
    `mutation($org: Id!) {
      token: createServiceToken(orgId: $org, input: { name: "nightly-report", permissions: ["agent.view"] }) { id }
      allowHost(orgId: $org, input: { host: "files.example.com" }) { id }
      endpoint: createEventEndpoint(orgId: $org, input: { name: "Ticket bridge", url: "https://tickets.example.com/muster", types: ["approval.raised"] }) { id }
      allowed: allowPermission(orgId: $org, input: { role: VIEWER, permission: "contact.view", reason: "The front desk sees callers" }) { version }
      reset: resetPermission(orgId: $org, input: { role: VIEWER, permission: "contact.view", reason: "No front desk now" }) { version }
      updateOrganization(orgId: $org, input: { monthlyBudgetMicro: 50000000, costGuardTokensPerHour: 1000000 }) { id }
    }`,
  )
  const { approval } = await asks('do execute Load the ferry {"command": "load --all"}')
  const { serverId } = await record('agent', world.agent, 'serverId')
  const ids = Object.fromEntries(Object.entries(made).map(([name, { id }]) => [name, id]))
  return { ...ids, token: token.id, endpoint: endpoint.id, approval, server: serverId }
}

/** The ids of one record of each kind. */
export const records = await furnish()

/** An organization's pages: name, the router's path below `/o/$org`, the address below it if that is another. */
const OF_ORGANIZATION = [
  ['overview', '/'],
  ['approvals', '/approvals'],
  ['approvals-alerts', '/approvals', '/approvals?tab=alerts'],
  ['approvals-all', '/approvals', '/approvals?tab=all'],
  ['approval', '/approvals/$id', `/approvals/${records.approval}`],
  ['conversations', '/conversations'],
  ['conversations-said', '/conversations', '/conversations?q=beans&tab=said'],
  ['conversation', '/conversations/$id', `/conversations/${world.conversation}`],
  ['conversation-details', '/conversations/$id', `/conversations/${world.conversation}?panel=details`],
  ['conversation-turns', '/conversations/$id', `/conversations/${world.conversation}?panel=turns`],
  ['contacts', '/contacts'],
  ['agents', '/agents'],
  ['images', '/agents', '/agents?tab=images'],
  ['agent', '/agents/$id', `/agents/${world.agent}`],
  ['agent-turns', '/agents/$id', `/agents/${world.agent}?tab=turns`],
  ['agent-logs', '/agents/$id', `/agents/${world.agent}?tab=logs`],
  ['agent-settings', '/agents/$id', `/agents/${world.agent}?tab=settings`],
  ['agent-revisions', '/agents/$id', `/agents/${world.agent}?tab=revisions`],
  ['agent-launches', '/agents/$id', `/agents/${world.agent}?tab=launches`],
  ['agent-backups', '/agents/$id', `/agents/${world.agent}?tab=backups`],
  ['servers', '/servers'],
  ['server', '/servers/$id', `/servers/${records.server}`],
  ['channels', '/channels'],
  ['credentials', '/credentials'],
  ['mcp-servers', '/mcp-servers'],
  ['skills', '/skills'],
  ['members', '/members'],
  ['invitations', '/members', '/members?tab=invitations'],
  ['tokens', '/tokens'],
  ['policies', '/policies'],
  ['policies-text', '/policies', '/policies?tab=text'],
  ['policies-history', '/policies', '/policies?tab=history'],
  ['settings', '/settings'],
  ['settings-safety', '/settings', '/settings?tab=safety'],
  ['settings-money', '/settings', '/settings?tab=money'],
  ['settings-network', '/settings', '/settings?tab=network'],
  ['settings-events', '/settings', '/settings?tab=events'],
  ['settings-limits', '/settings', '/settings?tab=limits'],
  ['settings-data', '/settings', '/settings?tab=data'],
  ['usage', '/usage'],
  ['usage-turns', '/usage', '/usage?measure=TURNS&by=CAUSE'],
  ['audit', '/audit'],
  ['start', '/start'],
  ['help', '/help'],
]

/** The pages of an organization, by default that of the world. */
export const inside = (org = world.org) =>
  OF_ORGANIZATION.map(([name, path, at = path]) => ({ name, route: `/o/$org${path}`, at: `/o/${org}${at}` }))

/** What one has without an organization. The account shows what the shell has read, except for `reads`. */
export const OWN = [
  { name: 'account', route: '/account', at: '/account' },
  { name: 'account-security', route: '/account', at: '/account?tab=security', reads: true },
  { name: 'account-notifications', route: '/account', at: '/account?tab=notifications', reads: true },
  { name: 'account-appearance', route: '/account', at: '/account?tab=appearance' },
]

/** Everything that a signed-in person can open. */
export const PAGES = apart([...inside(), ...OWN, { name: 'nowhere', route: '/o/$org/$', at: `/o/${world.org}/nowhere` }])

/** What stands before the sign-in. */
export const BEFORE = [
  ...['sign-in', 'first-start', 'accept-invitation', 'reset-password', 'confirm-email'].map((name) => ({
    name,
    route: `/${name}`,
    at: `/${name}`,
  })),
  // Where a vendor leads back to.
  { name: 'oauth-channel', route: '/oauth/channel', at: '/oauth/channel' },
]

/** A person without an organization sees this; all others are led on from it. */
export const HOME = { name: 'home', route: '/', at: '/' }
