// The people who may use a credential themselves.
import { X } from 'lucide-react'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useFindMembers } from '../../app/find-members'
import { useOrg } from '../../app/organization'
import { Gate } from '../../permissions/gate'
import { Avatar } from '../../ui/avatar'
import { IconButton } from '../../ui/button'
import { Panel } from '../../ui/page'
import { Picker } from '../../ui/picker'
import { Visible } from '../../ui/visible'
import type { Credential } from './credential-peek'

const SetMembers = graphql(`
  mutation SetCredentialMembers($orgId: Id!, $id: Id!, $userIds: [Id!]!) {
    setCredentialMembers(orgId: $orgId, id: $id, input: { userIds: $userIds }) {
      id revision members { userId name email avatarUrl }
    }
  }
`)

export function Members({ credential }: { credential: Credential }) {
  const { id: orgId } = useOrg()
  const change = useAct(SetMembers)
  const ids = credential.members.map(({ userId }) => userId)
  const set = (userIds: number[], said: string) => {
    const send = (to: number[]) => ({ orgId, id: credential.id, userIds: to })
    void change(send(userIds), { said, undo: () => change(send(ids), { said: 'Taken back' }) })
  }
  const find = useFindMembers()
  return (
    <Panel title="People" about="Who may use it themselves.">
      <ul className="mb-2 space-y-1">
        {credential.members.map(({ userId, name, avatarUrl }) => (
          <li key={userId} className="flex items-center gap-2">
            <Avatar name={name} url={avatarUrl} size="sm" />
            <span className="min-w-0 grow truncate">
              <Visible text={name} />
            </span>
            <Gate on={credential} may="credential.edit">
              <IconButton
                icon={X}
                size="sm"
                label={`Take it from ${name}`}
                onClick={() =>
                  set(
                    ids.filter((id) => id !== userId),
                    `${name} no longer has it`,
                  )
                }
              />
            </Gate>
          </li>
        ))}
      </ul>
      <Gate on={credential} may="credential.edit">
        <Picker
          aria-label="Give it to somebody"
          placeholder="Give it to somebody…"
          value={null}
          search={find}
          disabled={!credential.viewerCan.includes('credential.edit')}
          empty="Nobody has this name."
          onValue={(person) => {
            if (person && !ids.includes(Number(person.id)))
              set([...ids, Number(person.id)], `${person.name} has it`)
          }}
        />
      </Gate>
    </Panel>
  )
}
