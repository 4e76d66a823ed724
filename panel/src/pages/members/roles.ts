// Each role's purpose in one sentence, and who may assign it.

export const ROLES = ['OWNER', 'ADMIN', 'OPERATOR', 'VIEWER'] as const
export type Role = (typeof ROLES)[number]

export const ROLE_NAMES: Record<Role, string> = {
  OWNER: 'Owner',
  ADMIN: 'Admin',
  OPERATOR: 'Operator',
  VIEWER: 'Viewer',
}

export const ROLE_MEANINGS: Record<Role, string> = {
  OWNER: 'Everything, including the organization itself and its owners.',
  ADMIN: 'Sets up agents, servers and people, and decides what they may do.',
  OPERATOR: 'Runs agents: talks to them, starts and stops them, decides what they ask.',
  VIEWER: 'Sees what runs, and changes nothing.',
}

/** The roles a member with this role may assign or revoke: none above their own. */
export function rolesUpTo(own: string | null | undefined): Role[] {
  const from = ROLES.indexOf(own as Role)
  return from < 0 ? [] : ROLES.slice(from)
}
