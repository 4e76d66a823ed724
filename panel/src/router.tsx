// The panel's route table. Each page is its own chunk, in src/pages/<area>.
import { createRootRoute, createRoute, createRouter, redirect } from '@tanstack/react-router'
import { lastOrganization } from './app/last-organization'
import { lazyPage } from './app/lazy-page'
import { NotFound } from './app/not-found'
import { PageFailed } from './app/page-failed'
import { Root } from './app/root'
import { id as idOf, parseSearch, searchOf, stringifySearch, text } from './app/search'
import { agentSearch, agentsSearch } from './pages/agents/search'
import { approvalSearch, approvalsSearch } from './pages/approvals/search'
import { auditSearch } from './pages/audit/search'
import { conversationSearch, conversationsSearch } from './pages/conversations/search'
import { policiesSearch } from './pages/policies/search'
import { contactsSearch, listSearch, tabSearch } from './pages/search'
import { usageSearch } from './pages/usage/search'

const root = createRootRoute({ component: Root, notFoundComponent: NotFound, errorComponent: PageFailed })

// Routes for signed-out visitors.
const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  validateSearch: searchOf({ next: text }),
  component: lazyPage(() => import('./pages/sign-in/sign-in-page'), 'SignInPage'),
})
const firstStart = createRoute({
  getParentRoute: () => root,
  path: '/first-start',
  component: lazyPage(() => import('./pages/first-start/first-start-page'), 'FirstStartPage'),
})
const links = [
  createRoute({
    getParentRoute: () => root,
    path: '/accept-invitation',
    component: lazyPage(() => import('./pages/sign-in/invitation-page'), 'AcceptInvitationPage'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/reset-password',
    component: lazyPage(() => import('./pages/sign-in/link-pages'), 'ResetPasswordPage'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/confirm-email',
    component: lazyPage(() => import('./pages/sign-in/link-pages'), 'ConfirmEmailPage'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/oauth/channel',
    component: lazyPage(() => import('./pages/channels/authorization-page'), 'ChannelAuthorizationPage'),
  }),
] as const

// Routes for signed-in users. The shell loads together with the page, so signing in does without it.
const inside = createRoute({
  getParentRoute: () => root,
  id: 'inside',
  component: lazyPage(() => import('./app/shell'), 'Shell'),
})
const home = createRoute({
  getParentRoute: () => inside,
  path: '/',
  beforeLoad: () => {
    const org = lastOrganization()
    if (org) throw redirect({ to: '/o/$org', params: { org } })
  },
  component: lazyPage(() => import('./pages/overview/home-page'), 'HomePage'),
})
const account = createRoute({
  getParentRoute: () => inside,
  path: '/account',
  validateSearch: tabSearch,
  component: lazyPage(() => import('./pages/account/account-page'), 'AccountPage'),
})
// An address with an invalid id has no page.
const org = createRoute({
  getParentRoute: () => inside,
  path: '/o/$org',
  params: {
    parse: (raw: { org: string }): { org: number } | false => {
      const org = idOf(raw.org)
      return org !== undefined && { org }
    },
    stringify: ({ org }) => ({ org: String(org) }),
  },
})
const record = {
  params: {
    parse: (raw: { id: string }): { id: number } | false => {
      const id = idOf(raw.id)
      return id !== undefined && { id }
    },
    stringify: ({ id }: { id: number }) => ({ id: String(id) }),
  },
  // Each record is a new page: nothing shown or typed for the previous record carries over.
  remountDeps: ({ params }: { params: unknown }) => params,
}
const overview = createRoute({
  getParentRoute: () => org,
  path: '/',
  component: lazyPage(() => import('./pages/overview/overview-page'), 'OverviewPage'),
})
const approvals = createRoute({
  getParentRoute: () => org,
  path: '/approvals',
  validateSearch: approvalsSearch,
  component: lazyPage(() => import('./pages/approvals/approvals-page'), 'ApprovalsPage'),
})
const approval = createRoute({
  getParentRoute: () => org,
  path: '/approvals/$id',
  ...record,
  validateSearch: approvalSearch,
  component: lazyPage(() => import('./pages/approvals/approval-page'), 'ApprovalPage'),
})
const conversations = createRoute({
  getParentRoute: () => org,
  path: '/conversations',
  validateSearch: conversationsSearch,
  component: lazyPage(() => import('./pages/conversations/conversations-page'), 'ConversationsPage'),
})
const conversation = createRoute({
  getParentRoute: () => org,
  path: '/conversations/$id',
  ...record,
  validateSearch: conversationSearch,
  component: lazyPage(() => import('./pages/conversations/conversation-page'), 'ConversationPage'),
})
const contacts = createRoute({
  getParentRoute: () => org,
  path: '/contacts',
  validateSearch: contactsSearch,
  component: lazyPage(() => import('./pages/contacts/contacts-page'), 'ContactsPage'),
})
const agents = createRoute({
  getParentRoute: () => org,
  path: '/agents',
  validateSearch: agentsSearch,
  component: lazyPage(() => import('./pages/agents/agents-page'), 'AgentsPage'),
})
const agent = createRoute({
  getParentRoute: () => org,
  path: '/agents/$id',
  ...record,
  validateSearch: agentSearch,
  component: lazyPage(() => import('./pages/agents/agent-page'), 'AgentPage'),
})
const servers = createRoute({
  getParentRoute: () => org,
  path: '/servers',
  validateSearch: listSearch,
  component: lazyPage(() => import('./pages/servers/servers-page'), 'ServersPage'),
})
const server = createRoute({
  getParentRoute: () => org,
  path: '/servers/$id',
  ...record,
  validateSearch: tabSearch,
  component: lazyPage(() => import('./pages/servers/server-page'), 'ServerPage'),
})
const channels = createRoute({
  getParentRoute: () => org,
  path: '/channels',
  validateSearch: listSearch,
  component: lazyPage(() => import('./pages/channels/channels-page'), 'ChannelsPage'),
})
const credentials = createRoute({
  getParentRoute: () => org,
  path: '/credentials',
  validateSearch: listSearch,
  component: lazyPage(() => import('./pages/credentials/credentials-page'), 'CredentialsPage'),
})
const mcpServers = createRoute({
  getParentRoute: () => org,
  path: '/mcp-servers',
  validateSearch: listSearch,
  component: lazyPage(() => import('./pages/mcp-servers/mcp-servers-page'), 'McpServersPage'),
})
const skills = createRoute({
  getParentRoute: () => org,
  path: '/skills',
  validateSearch: listSearch,
  component: lazyPage(() => import('./pages/skills/skills-page'), 'SkillsPage'),
})
const members = createRoute({
  getParentRoute: () => org,
  path: '/members',
  validateSearch: listSearch,
  component: lazyPage(() => import('./pages/members/members-page'), 'MembersPage'),
})
const tokens = createRoute({
  getParentRoute: () => org,
  path: '/tokens',
  validateSearch: listSearch,
  component: lazyPage(() => import('./pages/tokens/tokens-page'), 'TokensPage'),
})
const policies = createRoute({
  getParentRoute: () => org,
  path: '/policies',
  validateSearch: policiesSearch,
  component: lazyPage(() => import('./pages/policies/policies-page'), 'PoliciesPage'),
})
const settings = createRoute({
  getParentRoute: () => org,
  path: '/settings',
  validateSearch: tabSearch,
  component: lazyPage(() => import('./pages/settings/settings-page'), 'SettingsPage'),
})
const audit = createRoute({
  getParentRoute: () => org,
  path: '/audit',
  validateSearch: auditSearch,
  component: lazyPage(() => import('./pages/audit/audit-page'), 'AuditPage'),
})
const usage = createRoute({
  getParentRoute: () => org,
  path: '/usage',
  validateSearch: usageSearch,
  component: lazyPage(() => import('./pages/usage/usage-page'), 'UsagePage'),
})
const start = createRoute({
  getParentRoute: () => org,
  path: '/start',
  validateSearch: tabSearch,
  component: lazyPage(() => import('./pages/start/start-page'), 'StartPage'),
})

const help = createRoute({
  getParentRoute: () => org,
  path: '/help',
  component: lazyPage(() => import('./pages/help/help-page'), 'HelpPage'),
})

const nowhere = createRoute({ getParentRoute: () => org, path: '/$', component: NotFound })

const lists = [
  servers,
  server,
  channels,
  credentials,
  mcpServers,
  skills,
  members,
  tokens,
  policies,
  settings,
  usage,
  audit,
  start,
  help,
  nowhere,
] as const
const work = [overview, approvals, approval, conversations, conversation, contacts, agents, agent] as const
const tree = root.addChildren([
  signIn,
  firstStart,
  ...links,
  inside.addChildren([home, account, org.addChildren([...work, ...lists])]),
])

export const router = createRouter({
  routeTree: tree,
  parseSearch,
  stringifySearch,
  defaultPreload: 'intent',
  defaultPreloadStaleTime: 0,
  scrollRestoration: true,
  defaultErrorComponent: PageFailed,
  defaultNotFoundComponent: NotFound,
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
