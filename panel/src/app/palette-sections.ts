// Sections of the settings and the account, and the documentation, for the palette: found by their contents.
import type { LinkProps } from '@tanstack/react-router'

interface Section {
  id: string
  label: string
  /** The words that people search for. */
  also: string
  link: LinkProps
}

const SETTINGS: [tab: string, name: string, also: string][] = [
  ['general', 'General', 'name picture logo time zone default image session backups retention'],
  ['safety', 'Safety', 'second factor 2fa alerts cpu memory load risk chat'],
  [
    'money',
    'Models and money',
    'budget usage cost spending prices currency tokens cost guard model credential api key',
  ],
  ['network', 'Network', 'allowed hosts firewall'],
  ['events', 'Events', 'event endpoints webhooks deliveries'],
  ['limits', 'Limits', 'quota maximum'],
  ['data', 'Data', 'export delete organization download'],
]
const ACCOUNT: [tab: string, name: string, also: string][] = [
  ['profile', 'Profile', 'name e-mail picture linked chats'],
  ['security', 'Security', 'password second factor 2fa sessions sign out'],
  ['notifications', 'Notifications', 'mail'],
  ['appearance', 'Appearance', 'theme dark light time zone keys shortcuts density'],
]

/** `org`: the current organization. */
export function sections(org: number | undefined): Section[] {
  const to = (path: string, search: object, params = {}) => ({ to: path, search, params }) as LinkProps
  const ofOrganization = SETTINGS.map(([tab, name, also]) => ({
    id: `settings.${tab}`,
    label: `Settings: ${name}`,
    also,
    link: to('/o/$org/settings', { tab }, { org }),
  }))
  const lists = [
    {
      id: 'go.images',
      label: 'Images',
      also: 'agents',
      link: to('/o/$org/agents', { tab: 'images' }, { org }),
    },
    {
      id: 'go.invitations',
      label: 'Invitations',
      also: 'members invite',
      link: to('/o/$org/members', { tab: 'invitations' }, { org }),
    },
    {
      id: 'go.alerts',
      label: 'Approvals: Alerts',
      also: 'problems',
      link: to('/o/$org/approvals', { tab: 'alerts' }, { org }),
    },
  ]
  const ofAccount = ACCOUNT.map(([tab, name, also]) => ({
    id: `account.${tab}`,
    label: `Your account: ${name}`,
    also,
    link: to('/account', { tab }),
  }))
  return [...(org ? [...ofOrganization, ...lists] : []), ...ofAccount]
}

/** Pages outside the panel. */
export const DOCUMENTS = [
  { id: 'docs', label: 'Documentation', also: 'help manual guide', href: '/docs' },
  { id: 'docs.api', label: 'Reference of the API', also: 'help rest openapi', href: '/docs/api' },
]
