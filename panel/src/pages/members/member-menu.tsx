// Actions on a member: remove, erase, leave.
import { useNavigate } from '@tanstack/react-router'
import { Ellipsis, LogOut, Trash2, UserMinus } from 'lucide-react'
import { useState } from 'react'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { ErasureFields } from '../../app/erasures'
import { useOrg } from '../../app/organization'
import { useViewer } from '../../app/viewer'
import { useRefused } from '../../permissions/gate'
import { useMenuActions } from '../../ui/actions'
import { IconButton } from '../../ui/button'
import { ConfirmDialog } from '../../ui/confirm'
import { Menu, type MenuEntry } from '../../ui/menu'
import type { Member } from './member'
import { rolesUpTo } from './roles'

const Remove = graphql(`
  mutation RemoveMember($orgId: Id!, $userId: Id!) {
    removeMember(orgId: $orgId, userId: $userId)
  }
`)
const Erase = graphql(
  `
    mutation EraseMember($orgId: Id!, $userId: Id!) {
      eraseMember(orgId: $orgId, userId: $userId) { ...ErasureFields }
    }
  `,
  [ErasureFields],
)
const Leave = graphql(`
  mutation LeaveOrganization($orgId: Id!) {
    leaveOrganization(orgId: $orgId)
  }
`)

interface Props {
  member: Member
  /** Also in the palette, because this member is open. */
  offered?: boolean
  onRemoved?: () => void
}

export function MemberMenu({ member, offered, onRemoved }: Props) {
  const org = useOrg()
  const { user } = useViewer()
  const navigate = useNavigate()
  const refused = useRefused('member.edit')
  const unerasable = useRefused('organization.erase')
  const [remove, erase, leave] = [useAct(Remove), useAct(Erase), useAct(Leave)]
  const [asking, ask] = useState<'remove' | 'erase' | 'leave' | null>(null)
  const isSelf = member.userId === user.id
  const given = rolesUpTo(org.viewerRole)
  const entries: MenuEntry[] = [
    isSelf
      ? { label: 'Leave the organization', icon: LogOut, look: 'danger', onSelect: () => ask('leave') }
      : {
          label: 'Remove',
          inFull: 'Remove the member',
          icon: UserMinus,
          look: 'danger',
          disabled: !refused && !given.includes(member.role),
          refused,
          onSelect: () => ask('remove'),
        },
    {
      label: 'Erase',
      inFull: 'Erase the member',
      icon: Trash2,
      look: 'danger',
      refused: unerasable,
      onSelect: () => ask('erase'),
    },
  ]
  useMenuActions('Member', offered ? entries : [])
  return (
    <>
      <Menu
        align="end"
        entries={entries}
        trigger={<IconButton icon={Ellipsis} size="sm" label={`Actions for ${member.name}`} />}
      />
      <ConfirmDialog
        open={asking === 'remove'}
        onClose={() => ask(null)}
        title={`Remove ${member.name}?`}
        action="Remove"
        busy={remove.pending}
        onConfirm={async () => {
          const variables = { orgId: org.id, userId: member.userId }
          const { error } = await remove(variables, { said: `Removed ${member.name}` })
          ask(null)
          if (!error) onRemoved?.()
        }}
      >
        {member.name} will lose access to {org.name}. Everything that they created stays. You can invite them
        again.
      </ConfirmDialog>
      <ConfirmDialog
        open={asking === 'erase'}
        onClose={() => ask(null)}
        title={`Erase ${member.name}?`}
        action="Schedule the erasure"
        typed={member.name}
        busy={erase.pending}
        onConfirm={async () => {
          const variables = { orgId: org.id, userId: member.userId }
          await erase(variables, { said: 'The erasure is scheduled: see Settings, Data' })
          ask(null)
        }}
      >
        After a grace period {member.name} loses access to {org.name}, and their name is replaced in its
        records for good. The account itself and the texts of messages stay.
      </ConfirmDialog>
      <ConfirmDialog
        open={asking === 'leave'}
        onClose={() => ask(null)}
        title={`Leave ${org.name}?`}
        action="Leave"
        busy={leave.pending}
        onConfirm={async () => {
          const { error } = await leave({ orgId: org.id }, { said: `You have left ${org.name}` })
          ask(null)
          if (!error) await navigate({ to: '/account' })
        }}
      >
        You will lose access to it. Another member can invite you again.
      </ConfirmDialog>
    </>
  )
}
