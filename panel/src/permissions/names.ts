// Permission names, as in the service. A test compares them with policies/policy.csv.
export const PERMISSIONS = [
  ...([
    'organization.view',
    'organization.edit',
    'organization.stop',
    'organization.release',
    'organization.erase',
  ] as const),
  ...([
    'member.view',
    'member.edit',
    'token.view',
    'token.edit',
    'audit.view',
    'policy.view',
    'policy.edit',
  ] as const),
  ...(['server.view', 'server.create', 'server.edit', 'server.delete', 'image.view', 'image.edit'] as const),
  ...([
    'agent.view',
    'agent.create',
    'agent.edit',
    'agent.delete',
    'agent.interact',
    'agent.output.view',
  ] as const),
  ...(['conversation.view', 'conversation.edit', 'contact.view', 'contact.edit'] as const),
  ...(['approval.view', 'approval.resolve'] as const),
  ...(['credential.view', 'credential.edit', 'credential.delete'] as const),
  ...(['mcp.view', 'mcp.create', 'mcp.edit', 'mcp.delete'] as const),
  ...(['skill.view', 'skill.create', 'skill.edit', 'skill.delete'] as const),
  ...(['network.edit'] as const),
] as const

export type Permission = (typeof PERMISSIONS)[number]
