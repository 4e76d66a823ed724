// The members who are alerted when a channel fails.
import { X } from 'lucide-react'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useLive } from '../../api/use-live'
import { useFindMembers } from '../../app/find-members'
import { alertAbout, useMailWay } from '../../app/mail'
import { useOrg } from '../../app/organization'
import { Gate } from '../../permissions/gate'
import { Avatar } from '../../ui/avatar'
import { IconButton } from '../../ui/button'
import { Panel } from '../../ui/panel'
import { Picker } from '../../ui/picker'
import { Visible } from '../../ui/visible'
import { type Channel, UpdateChannel } from './channel'

const MembersQuery = graphql(`
  query AlertedMembers($orgId: Id!) {
    members(orgId: $orgId, page: 1, limit: 200) { data { userId organizationId name avatarUrl } }
  }
`)

export function AlertRecipients({ channel }: { channel: Channel }) {
  const org = useOrg()
  const find = useFindMembers()
  const update = useAct(UpdateChannel)
  const ids = channel.alertRecipientUserIds
  const { data } = useLive({
    query: MembersQuery,
    variables: { orgId: org.id },
    on: ['MEMBER'],
    pause: ids.length === 0 || !org.can('member.view'),
  })
  const members = new Map(data?.members?.data.map((member) => [member.userId, member]))
  const set = (next: number[], said: string) => {
    const send = (to: number[]) => ({ orgId: org.id, id: channel.id, input: { alertRecipientUserIds: to } })
    void update(send(next), { said, undo: () => update(send(ids), { said: 'Undone' }) })
  }
  return (
    <Panel title="Alert recipients" about={alertAbout(useMailWay())}>
      {ids.length === 0 && (
        <p className="mb-2 text-muted">No recipients: owners and admins get the alerts.</p>
      )}
      <ul className="mb-2 space-y-1 empty:hidden">
        {ids.map((id) => {
          const name = members.get(id)?.name ?? `Member ${id}`
          return (
            <li key={id} className="flex items-center gap-2">
              <Avatar name={name} url={members.get(id)?.avatarUrl} size="sm" />
              <span className="min-w-0 grow truncate">
                <Visible text={name} />
              </span>
              <Gate on={channel} may="agent.edit">
                <IconButton
                  icon={X}
                  size="sm"
                  label={`No longer alert ${name}`}
                  onClick={() =>
                    set(
                      ids.filter((known) => known !== id),
                      `${name} is no longer alerted`,
                    )
                  }
                />
              </Gate>
            </li>
          )
        })}
      </ul>
      <Picker
        aria-label="Add a recipient"
        placeholder="Add a recipient…"
        value={null}
        search={find}
        disabled={!channel.viewerCan.includes('agent.edit')}
        empty="No member has this name."
        onValue={(person) => {
          if (person && !ids.includes(Number(person.id)))
            set([...ids, Number(person.id)], `${person.name} is alerted`)
        }}
      />
    </Panel>
  )
}
