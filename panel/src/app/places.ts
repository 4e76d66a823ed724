// The pages of an organization: one list for the navigation, the palette and the shortcuts.
import type { LinkProps } from '@tanstack/react-router'
import {
  Bot,
  Boxes,
  Building2,
  ChartColumn,
  CircleQuestionMark,
  Contact,
  Gauge,
  Hash,
  KeyRound,
  type LucideIcon,
  MessagesSquare,
  Plug,
  Scale,
  ScrollText,
  Server,
  ShieldQuestion,
  Sparkles,
  Ticket,
  Users,
} from 'lucide-react'
import type { Permission } from '../permissions/names'

export interface NavItem {
  id: string
  label: string
  icon: LucideIcon
  to: LinkProps['to']
  keys?: string
  /** Without this permission the page is not listed. */
  needs: Permission
  group: 'work' | 'build' | 'organization'
}

export const NAV_ITEMS: NavItem[] = [
  {
    id: 'overview',
    label: 'Overview',
    icon: Gauge,
    to: '/o/$org',
    keys: 'g o',
    needs: 'organization.view',
    group: 'work',
  },
  {
    id: 'approvals',
    label: 'Approvals',
    icon: ShieldQuestion,
    to: '/o/$org/approvals',
    keys: 'g i',
    needs: 'approval.view',
    group: 'work',
  },
  {
    id: 'conversations',
    label: 'Conversations',
    icon: MessagesSquare,
    to: '/o/$org/conversations',
    keys: 'g c',
    needs: 'agent.output.view',
    group: 'work',
  },
  {
    id: 'contacts',
    label: 'Contacts',
    icon: Contact,
    to: '/o/$org/contacts',
    keys: 'g n',
    needs: 'contact.view',
    group: 'work',
  },
  {
    id: 'agents',
    label: 'Agents',
    icon: Bot,
    to: '/o/$org/agents',
    keys: 'g a',
    needs: 'agent.view',
    group: 'work',
  },
  {
    id: 'servers',
    label: 'Servers',
    icon: Server,
    to: '/o/$org/servers',
    keys: 'g s',
    needs: 'server.view',
    group: 'build',
  },
  {
    id: 'channels',
    label: 'Channels',
    icon: Hash,
    to: '/o/$org/channels',
    keys: 'g h',
    needs: 'agent.view',
    group: 'build',
  },
  {
    id: 'credentials',
    label: 'Credentials',
    icon: KeyRound,
    to: '/o/$org/credentials',
    keys: 'g k',
    needs: 'credential.view',
    group: 'build',
  },
  {
    id: 'mcp-servers',
    label: 'MCP servers',
    icon: Plug,
    to: '/o/$org/mcp-servers',
    keys: 'g p',
    needs: 'mcp.view',
    group: 'build',
  },
  {
    id: 'skills',
    label: 'Skills',
    icon: Sparkles,
    to: '/o/$org/skills',
    keys: 'g l',
    needs: 'skill.view',
    group: 'build',
  },
  {
    id: 'members',
    label: 'Members',
    icon: Users,
    to: '/o/$org/members',
    keys: 'g m',
    needs: 'member.view',
    group: 'organization',
  },
  {
    id: 'tokens',
    label: 'Service tokens',
    icon: Ticket,
    to: '/o/$org/tokens',
    keys: 'g t',
    needs: 'token.view',
    group: 'organization',
  },
  {
    id: 'policies',
    label: 'Policies',
    icon: Scale,
    to: '/o/$org/policies',
    keys: 'g r',
    needs: 'policy.view',
    group: 'organization',
  },
  {
    id: 'usage',
    label: 'Usage',
    icon: ChartColumn,
    to: '/o/$org/usage',
    keys: 'g b',
    needs: 'organization.view',
    group: 'organization',
  },
  {
    id: 'audit',
    label: 'Audit log',
    icon: ScrollText,
    to: '/o/$org/audit',
    keys: 'g u',
    needs: 'audit.view',
    group: 'organization',
  },
  {
    id: 'settings',
    label: 'Settings',
    icon: Building2,
    to: '/o/$org/settings',
    keys: 'g e',
    needs: 'organization.view',
    group: 'organization',
  },
  {
    id: 'start',
    label: 'Get started',
    icon: Boxes,
    to: '/o/$org/start',
    needs: 'agent.create',
    group: 'organization',
  },
  {
    id: 'help',
    label: 'Help',
    icon: CircleQuestionMark,
    to: '/o/$org/help',
    keys: 'g d',
    needs: 'organization.view',
    group: 'organization',
  },
]

export const GROUPS = [
  { id: 'work', label: null },
  { id: 'build', label: 'Resources' },
  { id: 'organization', label: 'Organization' },
] as const

/** The page at a path of an organization, or the list of the record there. */
export const placeAt = (pathname: string): NavItem | undefined => {
  const [, , , name = ''] = pathname.split('/')
  return NAV_ITEMS.find(({ to }) => (to?.split('/')[3] ?? '') === name)
}
