// A member's role, as a button that changes it.
import { ChevronDown } from 'lucide-react'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useOrg } from '../../app/organization'
import { useViewer } from '../../app/viewer'
import { Gate, useRefused } from '../../permissions/gate'
import { useMenuActions } from '../../ui/actions'
import { Badge } from '../../ui/badge'
import { Button } from '../../ui/button'
import { Menu, type MenuEntry } from '../../ui/menu'
import type { Member } from './member'
import { ROLE_MEANINGS, ROLE_NAMES, type Role, rolesUpTo } from './roles'

const Update = graphql(`
  mutation UpdateMember($orgId: Id!, $userId: Id!, $role: Role!) {
    updateMember(orgId: $orgId, userId: $userId, input: { role: $role }) { userId organizationId role }
  }
`)

interface Props {
  member: Member
  /** Also in the palette, because this member is open. */
  offered?: boolean
}

export function RoleMenu({ member, offered }: Props) {
  const org = useOrg()
  const { user } = useViewer()
  const refused = useRefused('member.edit')
  const update = useAct(Update)
  const roles = rolesUpTo(org.viewerRole)
  const change = (role: Role) => {
    const variables = { orgId: org.id, userId: member.userId }
    const before = member.role
    void update(
      { ...variables, role },
      {
        said: `${member.name} is now ${/^[AO]/.test(ROLE_NAMES[role]) ? 'an' : 'a'} ${ROLE_NAMES[role]}`,
        // After giving up a role, the user may not be able to restore it.
        ...(member.userId !== user.id && {
          undo: () => update({ ...variables, role: before }, { said: 'Undone' }),
        }),
      },
    )
  }
  const entries: MenuEntry[] = roles.map((role) => ({
    label: ROLE_NAMES[role],
    inFull: `Assign the role ${ROLE_NAMES[role]}`,
    about: ROLE_MEANINGS[role],
    checked: role === member.role,
    refused,
    onSelect: () => role !== member.role && change(role),
  }))
  const name = ROLE_NAMES[member.role]
  // A role above the viewer's own is out of reach.
  const isFixed = !roles.includes(member.role)
  useMenuActions('Member', offered && !isFixed ? entries : [])
  const label = `Role of ${member.name}: ${name}`
  if (isFixed || (refused && !offered)) return <Badge tip={ROLE_MEANINGS[member.role]}>{name}</Badge>
  if (refused) {
    return (
      <Gate may="member.edit">
        <Button size="sm" aria-label={label}>
          {name}
        </Button>
      </Gate>
    )
  }
  return (
    <Menu
      entries={entries}
      trigger={
        <Button size="sm" busy={update.pending} aria-label={label}>
          {name}
          <ChevronDown size={14} aria-hidden />
        </Button>
      }
    />
  )
}
