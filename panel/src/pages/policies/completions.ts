// What can stand in a field of a line: roles, the organization, permissions, effects. No React here.
import { ROLE_MEANINGS, ROLES } from '../members/roles'
import type { Permissions } from './queries'

export interface Choice {
  label: string
  /** Its meaning. */
  info: string
}

/** The choices for the field that ends a part of a line, and what is written of it. Null where there are none. */
export function choicesAt(
  before: string,
  org: number,
  permissions: Permissions,
): { written: string; choices: Choice[] } | null {
  const fields = before.split(',')
  if (fields[0]?.trim() !== 'p') return null
  const written = fields.at(-1)?.trimStart() ?? ''
  const choices = [
    [],
    ROLES.map((role) => ({ label: role, info: ROLE_MEANINGS[role] })),
    [{ label: String(org), info: 'This organization.' }],
    permissions.map(({ permission, meaning }) => ({ label: permission, info: meaning })),
    EFFECTS,
  ][fields.length - 1]
  // Nothing to choose: Enter begins the next line.
  if (!choices?.length || choices.some(({ label }) => label === written)) return null
  return { written, choices }
}

const EFFECTS: Choice[] = [
  { label: 'allow', info: 'Also for the roles above.' },
  { label: 'deny', info: 'Also for the roles below. Overrides every allow.' },
]
