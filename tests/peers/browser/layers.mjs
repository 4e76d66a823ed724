// The one table of what opens over a page or beside it: dialogs, menus, pickers, peeks. `of` is the file of the panel's
// source; `table.mjs` finds the files, and one that is not listed here fails.
//
// A layer opens by the keyboard from `from` (a control, which gets the focus and Enter), or by `keys`. `through` are the
// layers to go through first. `shown` is what appears.
import { asks, settled } from './acts.mjs'
import { records } from './pages.mjs'
import { until, world } from './stage.mjs'

const button = (name, exact = true) => (page) => page.getByRole('button', { name, exact }).first()
const field = (name) => (page) => page.getByRole('combobox', { name }).first()
const item = (name) => (page) => page.getByRole('menuitem', { name }).first()
const inDialog = (name) => (page) => page.getByRole('dialog').getByRole('button', { name, exact: true })
const row = (page) => page.getByRole('row').and(page.locator('[data-index]')).first()
const olderVersion = (page) => page.getByRole('row', { name: /The front desk sees callers$/ })
const firstRevision = (page) => page.getByRole('row', { name: /^Revision 1/ })
// Those that interrupt with a question have a role of their own.
const dialog = (name) => (page) => page.getByRole('dialog', { name }).or(page.getByRole('alertdialog', { name })).first()
const menu = (page) => page.getByRole('menu')
const choices = (page) => page.getByRole('listbox')
const beside = (name) => (page) => page.getByRole('complementary', { name })
const agent = `/agents/${world.agent}`

/** A dialog in which one field is typed and sent, before the layer comes that is meant. */
const fills = (label, text, send) => async (page) => {
  await page.getByRole('dialog').getByLabel(label, { exact: true }).fill(text)
  await inDialog(send)(page).press('Enter')
}
const signsOut = async (page) => {
  await page.context().clearCookies()
  await page.getByRole('searchbox').first().fill('x')
}
/** Begins a draft of the policies, which stays until it is discarded. */
const changesACell = async (page) => {
  const changed = (value) => page.getByRole('gridcell', { name: new RegExp(`^contact.view for Viewer: ${value}`) })
  if (await changed('no').isVisible()) await changed('no').press('Enter')
  await changed('yes').waitFor()
  const publish = button('Publish…')(page)
  await until(() => publish.isEnabled(), 'the effect of the draft')
}
const isInTurn = async (page) => {
  const { conversation } = await asks('do execute Hold the line {"command": "hold"}')
  await page.goto(`${world.base}/o/${world.org}/conversations/${conversation}`)
}
const asksTwice = async () => {
  await asks('do execute Splice the painter {"command": "splice"}')
  await asks('do execute Whip the sheet {"command": "whip"}')
}
const isQuestion = async (page) => {
  const { approval } = await asks('ask Which berth? | North | South')
  await page.goto(`${world.base}/o/${world.org}/approvals/${approval}`)
}

/** What belongs to the work of every day. */
export const OF_WORK = [
  { of: 'app/palette.tsx', at: '/', from: button(/Find anything/, false), shown: dialog('Find anything') },
  { of: 'keys/key-sheet.tsx', at: '/', keys: '?', from: button(/Find anything/, false), shown: dialog('Keyboard shortcuts') },
  { of: 'app/person-menu.tsx', at: '/', from: button(/^You:/, false), shown: menu },
  { of: 'app/organization-switch.tsx', at: '/', from: button(/^Organization:/, false), shown: menu },
  { of: 'app/stop-dialog.tsx', at: '/', from: button('Stop all agents'), shown: dialog('Stop all agents?') },
  { of: 'permissions/why-dialog.tsx', as: 'VIEWER', at: '/agents', from: button('New agent'), shown: dialog('You may not do this') },
  { of: 'app/sign-in-again.tsx', at: '/skills', does: signsOut, shown: dialog('Your session has ended'), firm: true },
  { of: 'app/filters.tsx', at: '/approvals', from: button(/^Severity/, false), shown: menu },
  { of: 'app/filters.tsx', at: '/approvals', from: field('Agent'), shown: choices },
  { of: 'pages/usage/choice-menu.tsx', at: '/usage', from: button(/^Grouping:/, false), shown: menu },
  { of: 'app/saved-views.tsx', at: '/approvals', from: button('Saved views'), shown: menu },
  {
    of: 'app/saved-views-name.tsx', at: '/approvals?severity=HIGH',
    through: [button('Saved views')], from: item('Save this view…'), shown: dialog('Save this view'),
  },
  { of: 'pages/approvals/approval-peek.tsx', at: '/approvals', from: row, shown: (page) => page.getByRole('complementary').first() },
  { of: 'pages/approvals/several.tsx', at: '/approvals', does: asksTwice, from: button('Decide several…'), shown: dialog('Decide several actions') },
  { of: 'app/approvals/decide.tsx', at: `/approvals/${records.approval}`, from: button('More actions'), shown: menu },
  { of: 'app/approvals/decide.tsx', at: '/', does: isQuestion, from: button('More actions'), shown: menu },
  { of: 'app/approvals/handling.tsx', at: `/approvals/${records.approval}`, from: button('Snooze'), shown: menu },
  { of: 'app/approvals/handling.tsx', at: `/approvals/${records.approval}`, from: field('Who should decide'), shown: choices },
  { of: 'pages/conversations/new-dialog.tsx', at: '/conversations', from: button('New'), shown: dialog('New conversation') },
  { of: 'pages/conversations/header.tsx', at: `/conversations/${world.conversation}`, from: button('Actions for this conversation'), shown: menu },
  {
    of: 'pages/conversations/header.tsx', at: `/conversations/${world.conversation}`,
    through: [button('Actions for this conversation')], from: item(/Edit the subject/), shown: dialog('Subject of the conversation'),
  },
  { of: 'pages/conversations/thread/take-over.tsx', at: '/', does: isInTurn, keys: 't', from: button('Details'), shown: dialog('Take over now?') },
  { of: 'pages/conversations/thread/work-line.tsx', at: '/', does: isInTurn, from: button('Stop'), shown: dialog('Tell the agent to stop?') },
  { of: 'pages/agents/create-agent.tsx', at: '/agents', from: button('New agent'), shown: dialog('New agent') },
  { of: 'pages/agents/create-image.tsx', at: '/agents?tab=images', from: button('New image'), shown: dialog('New image') },
  { of: 'pages/agents/image-peek.tsx', at: '/agents?tab=images', from: (page) => page.getByRole('row', { name: /^OpenCode/ }), shown: beside('OpenCode') },
  { of: 'pages/agents/agent-menu.tsx', at: agent, from: button('More'), shown: menu },
  { of: 'pages/agents/agent-menu.tsx', at: agent, through: [button('More')], from: item('Duplicate'), shown: dialog(/^Duplicate agent of/) },
  { of: 'pages/agents/agent-menu.tsx', at: agent, through: [button('More')], from: item('Delete the agent'), shown: dialog(/^Delete agent of/) },
  { of: 'pages/agents/conversations.tsx', at: agent, from: button('New conversation'), shown: dialog(/^Talk to/) },
  { of: 'pages/agents/access.tsx', at: agent, from: field(/a skill$/), shown: choices },
  { of: 'pages/agents/settings-identity.tsx', at: `${agent}?tab=settings`, from: field('Server'), shown: choices },
  { of: 'pages/agents/settings-model.tsx', at: `${agent}?tab=settings`, from: field('Model'), shown: choices },
  { of: 'pages/settings/data.tsx', at: '/settings?tab=data', from: button('Delete the organization'), shown: dialog(/^Delete/) },
  { of: 'app/spending/allow-more.tsx', at: agent, from: button('Allow more this hour'), shown: dialog(/^Allow agent of/) },
  { of: 'pages/agents/turn-peek.tsx', at: `${agent}?tab=turns`, from: row, shown: beside(/^Turn/) },
  { of: 'pages/agents/backups.tsx', at: `${agent}?tab=backups`, from: button('Delete'), shown: dialog('Delete this backup?') },
  { of: 'pages/agents/compare.tsx', at: `${agent}?tab=revisions`, from: firstRevision, shown: beside('Revision 1') },
  { of: 'pages/agents/compare.tsx', at: `${agent}?tab=revisions`, through: [firstRevision], from: button('Go back to this'), shown: dialog(/^Go back to revision/) },
]

/** What belongs to the records that agents are given, and to the organization. */
export const OF_RECORDS = [
  { of: 'pages/skills/create-skill.tsx', at: '/skills', from: button('New skill'), shown: dialog('New skill') },
  { of: 'pages/skills/skill-peek.tsx', at: '/skills', from: row, shown: beside('tone-of-voice') },
  { of: 'pages/skills/versions.tsx', at: `/skills?peek=${records.skill}`, from: button('Look'), shown: dialog(/^Version/) },
  { of: 'app/assigned-agents.tsx', at: `/skills?peek=${records.skill}`, from: field(/^Assign this skill/), shown: choices },
  { of: 'pages/credentials/create-credential.tsx', at: '/credentials', from: button('New credential'), shown: dialog('New credential') },
  { of: 'pages/credentials/credential-peek.tsx', at: '/credentials', from: row, shown: beside('Help desk') },
  { of: 'pages/credentials/agent-use.tsx', at: `/credentials?peek=${records.credential}`, from: button('Let agents read it…'), shown: dialog('Let agents read Help desk?') },
  { of: 'pages/credentials/fields.tsx', at: `/credentials?peek=${records.credential}`, from: button('Replace'), shown: dialog('Replace key') },
  { of: 'pages/credentials/fields.tsx', at: `/credentials?peek=${records.credential}`, from: button('Delete key'), shown: dialog('Delete key?') },
  { of: 'pages/credentials/members.tsx', at: `/credentials?peek=${records.credential}`, from: field('Add a member'), shown: choices },
  { of: 'pages/mcp-servers/create-mcp-server.tsx', at: '/mcp-servers', from: button('New MCP server'), shown: dialog('New MCP server') },
  { of: 'pages/mcp-servers/mcp-server-peek.tsx', at: '/mcp-servers', from: row, shown: beside('tickets') },
  { of: 'pages/channels/create-channel.tsx', at: '/channels', from: button('New channel'), shown: dialog('New channel') },
  { of: 'pages/channels/channel-peek.tsx', at: '/channels', from: row, shown: beside('Shop calendar') },
  { of: 'pages/channels/channel-peek.tsx', at: `/channels?peek=${records.channel}`, from: button('Delete the channel'), shown: dialog(/^Delete Shop/) },
  { of: 'pages/channels/alert-recipients.tsx', at: `/channels?peek=${records.channel}`, from: field('Add a recipient'), shown: choices },
  { of: 'pages/servers/create-server.tsx', at: '/servers', from: button('New server'), shown: dialog('New server') },
  {
    of: 'pages/servers/provisioned.tsx', at: '/servers', through: [button('New server')], does: fills('Name', 'pier', 'Create the server'),
    shown: dialog('Connect pier'), firm: true,
  },
  { of: 'pages/servers/actions.tsx', at: `/servers/${records.server}`, from: button('New token'), shown: dialog(/^A new token/) },
  { of: 'pages/servers/actions.tsx', at: `/servers/${records.server}`, from: button('Delete'), shown: dialog(/^Delete/) },
  { of: 'pages/members/invite-dialog.tsx', at: '/members', from: button('Invite'), shown: dialog(/^Invite/) },
  { of: 'pages/members/hand-over.tsx', at: '/members?tab=invitations', from: button('Hand over the link'), shown: dialog(/^Hand over/) },
  { of: 'pages/members/invitation.tsx', at: '/members?tab=invitations', from: button(/^Revoke the invitation/, false), shown: dialog(/^Revoke/) },
  { of: 'pages/members/member-peek.tsx', at: '/members', from: (page) => page.getByRole('row', { name: /^Otto Operator/ }), shown: beside('Otto Operator') },
  { of: 'pages/members/invitation-peek.tsx', at: '/members?tab=invitations', from: row, shown: beside('guest@example.org') },
  { of: 'pages/members/member-menu.tsx', at: '/members', from: button('Actions for Otto Operator'), shown: menu },
  { of: 'pages/members/role-menu.tsx', at: '/members', from: button('Role of Otto Operator: Operator'), shown: menu },
  {
    of: 'pages/members/member-menu.tsx', at: '/members',
    through: [button('Actions for Otto Operator')], from: item('Remove'), shown: dialog(/^Remove Otto/),
  },
  {
    of: 'pages/members/member-menu.tsx', at: '/members',
    through: [button('Actions for Otto Operator')], from: item('Erase'), shown: dialog(/^Erase Otto/),
  },
  {
    of: 'pages/members/member-menu.tsx', at: '/members',
    through: [button('Actions for Olive Owner')], from: item('Leave the organization'), shown: dialog(/^Leave/),
  },
  { of: 'pages/tokens/create-token.tsx', at: '/tokens', from: button('New token'), shown: dialog('New service token') },
  {
    of: 'pages/tokens/tokens-page.tsx', at: '/tokens', through: [button('New token'), inDialog('Only read')],
    does: fills('Name', 'weekly report', 'Issue the token'), shown: (page) => page.getByRole('dialog').filter({ hasText: 'mst_' }), firm: true,
  },
  { of: 'pages/tokens/token-peek.tsx', at: '/tokens?q=nightly', from: row, shown: beside('nightly-report') },
  { of: 'pages/tokens/token-peek.tsx', at: `/tokens?peek=${records.token}`, from: button('New secret'), shown: dialog(/^New secret/) },
  { of: 'pages/tokens/token-peek.tsx', at: `/tokens?peek=${records.token}`, from: button('Revoke'), shown: dialog(/^Revoke/) },
  { of: 'pages/settings/general.tsx', at: '/settings', from: field('Time zone'), shown: choices },
  { of: 'pages/settings/general.tsx', at: '/settings', from: field('Image'), shown: choices },
  { of: 'pages/settings/model-credential-dialog.tsx', at: '/settings?tab=money', from: button('New model credential'), shown: dialog('New model credential') },
  { of: 'pages/settings/model-credentials.tsx', at: '/settings?tab=money', from: button('Actions for House key'), shown: menu },
  {
    of: 'pages/settings/model-credential-dialog.tsx', at: '/settings?tab=money',
    through: [button('Actions for House key')], from: item('Replace the key…'), shown: dialog('Replace the key of House key'),
  },
  {
    of: 'pages/settings/model-credentials.tsx', at: '/settings?tab=money',
    through: [button('Actions for House key')], from: item('Archive…'), shown: dialog('Archive House key?'),
  },
  { of: 'pages/settings/event-endpoint-dialog.tsx', at: '/settings?tab=events', from: button('New event endpoint'), shown: dialog('New event endpoint') },
  { of: 'pages/settings/event-endpoints.tsx', at: '/settings?tab=events', from: button('Actions for Ticket bridge'), shown: menu },
  {
    of: 'pages/settings/event-endpoints.tsx', at: '/settings?tab=events',
    through: [button('Actions for Ticket bridge')], from: item('Delete…'), shown: dialog('Delete Ticket bridge?'),
  },
  {
    of: 'pages/settings/event-deliveries.tsx', at: '/settings?tab=events',
    through: [button('Actions for Ticket bridge')], from: item('Events of the last 30 days'), shown: dialog('Events for Ticket bridge'),
  },
  { of: 'app/spending/allow-more.tsx', at: '/settings?tab=money', from: button('Allow more this month'), shown: dialog('Allow all agents more') },
  { of: 'app/spending/allow-host.tsx', at: '/settings?tab=network', from: button('Allow a host'), shown: dialog('Allow a host') },
  { of: 'pages/policies/publish-dialog.tsx', at: '/policies', does: changesACell, from: button('Publish…'), shown: dialog('Publish the draft') },
  { of: 'pages/policies/version-peek.tsx', at: '/policies?tab=history', from: row, shown: beside(/^Version/) },
  { of: 'pages/policies/revert-dialog.tsx', at: '/policies?tab=history', through: [olderVersion], from: button('Go back to this…'), shown: dialog(/^Go back to version/) },
  { of: 'pages/audit/export-dialog.tsx', at: '/audit', from: button('Export…'), shown: dialog('Export the audit log') },
  { of: 'pages/audit/entry-peek.tsx', at: '/audit', from: row, shown: (page) => page.getByRole('complementary').first() },
  { of: 'pages/account/second-factor.tsx', at: null, own: '/account?tab=security', from: button('Set up'), shown: dialog('Set up the second factor') },
]

/** What is opened elsewhere: why it is not in these tables. */
export const ELSEWHERE = {
  'app/stop-banner.tsx': 'it stands there only while all agents are stopped: two_browsers',
  'pages/agents/run.tsx': 'it asks only while the agent works: agents',
  'pages/channels/account.tsx': 'only a connected account can be disconnected: channels',
  'pages/channels/linked-chat.tsx': 'its code is made only for a bot: channels',
  'app/erase-contact.tsx': 'it stands there only with a contact: erased',
  'pages/contacts/contact-peek.tsx': 'it stands there only with a contact: erased',
  'pages/mcp-servers/connection-test.tsx': 'its picker stands there only without an agent: records',
  'pages/start/agent-step.tsx': 'its picker stands there only without an agent: first_run',
}

export const isPicker = ({ shown }) => shown === choices

/** Opens a layer by the keyboard, and answers the control that has opened it. */
export async function opensLayer(page, { at, own, through = [], does, from, keys, shown }) {
  await page.goto(world.base + (own ?? `/o/${world.org}${at}`))
  await settled(page)
  for (const step of through) await step(page).press('Enter')
  await does?.(page)
  const trigger = from?.(page)
  if (trigger) {
    await trigger.waitFor()
    // Pickers come with the overlays, a moment after the page.
    if (shown === choices) await until(async () => !(await trigger.getAttribute('readonly')), 'the picker')
    // What a page focuses by itself comes first.
    await until(async () => {
      await trigger.focus()
      return trigger.evaluate((element) => element === document.activeElement)
    }, 'the focus')
    await page.keyboard.press(keys ?? (shown === choices ? 'ArrowDown' : 'Enter'))
  }
  await shown(page).waitFor()
  return trigger
}
