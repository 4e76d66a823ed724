// The pages of the manual that people in the panel need. A test checks that they exist.
interface Part {
  title: string
  pages: { name: string; to: string; about: string }[]
}

export const MANUAL: Part[] = [
  {
    title: 'Use it',
    pages: [
      { name: 'The panel', to: 'panel.md', about: 'its pages, deciding, taking over, keys' },
      { name: 'Approvals', to: 'approvals.md', about: 'what agents ask, how risk is judged, who decides' },
      { name: 'Notifications', to: 'notifications.md', about: 'what reaches you when something needs you' },
      { name: 'Money', to: 'money.md', about: 'budgets, the cost guard, models' },
    ],
  },
  {
    title: 'Make agents',
    pages: [
      { name: 'Your first agent', to: 'first-agent.md', about: 'from nothing to an answer' },
      { name: 'Agents', to: 'agents.md', about: 'start and stop, turns, backups, revisions' },
      { name: 'Skills, MCP servers, credentials', to: 'tools.md', about: 'what an agent can do and use' },
      {
        name: 'Channels',
        to: 'channels/README.md',
        about: 'Telegram, Discord, Slack, e-mail, code hosts, calendars, webhooks',
      },
      { name: 'Hosts', to: 'hosts.md', about: 'the machines that agents run on' },
    ],
  },
  {
    title: 'Administer',
    pages: [
      { name: 'People', to: 'people.md', about: 'accounts, invitations, providers' },
      { name: 'Policies', to: 'policies.md', about: 'who may do what' },
      { name: 'Audit log', to: 'audit.md', about: 'who did what, and how to check it' },
      { name: 'Personal data', to: 'personal-data.md', about: 'export, erasure, deletion' },
      { name: 'Limits', to: 'limits.md', about: 'rates, plans, retention' },
      { name: 'Operations', to: 'operations.md', about: 'diagnosis, upgrades, emergencies' },
    ],
  },
  {
    title: 'Integrate',
    pages: [
      { name: 'The API', to: 'api.md', about: 'REST and GraphQL' },
      { name: 'Events', to: 'events.md', about: 'what happens, sent to your systems' },
      { name: 'Files', to: 'files.md', about: 'an organization as files, and the command line' },
      { name: 'Tools', to: 'mcp.md', about: 'Muster as an MCP server' },
    ],
  },
]
