// The members who may use a credential themselves.
import { X } from 'lucide-react'
import { useClient } from 'urql'
import { wordsOf } from '../../api/errors'
import { graphql } from '../../api/graphql'
import { readFresh } from '../../api/requests'
import { useAct } from '../../api/use-act'
import { changeSet } from '../../app/assigned-agents-calls'
import { useFindMembers } from '../../app/find-members'
import { useOrg } from '../../app/organization'
import { Gate } from '../../permissions/gate'
import { Avatar } from '../../ui/avatar'
import { IconButton } from '../../ui/button'
import { Panel } from '../../ui/panel'
import { Picker } from '../../ui/picker'
import { sayProblem } from '../../ui/toast-store'
import { Visible } from '../../ui/visible'
import type { Credential } from './credential-peek'

const MembersNow = graphql(`
  query MembersOfCredential($orgId: Id!, $id: Id!) {
    credential(orgId: $orgId, id: $id) { id members { userId name email avatarUrl } }
  }
`)
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
  const client = useClient()
  const which = { orgId, id: credential.id }
  const set = (person: { id: number; name: string }, has: boolean) =>
    void changeSet({
      id: person.id,
      has,
      said: `${person.name} ${has ? 'has it' : 'no longer has it'}`,
      read: async () => {
        const { data, error } = await readFresh(client, MembersNow, which)
        if (!data?.credential) sayProblem(wordsOf(error))
        return data?.credential?.members.map(({ userId }) => userId) ?? null
      },
      send: (userIds, options) => change({ ...which, userIds }, options),
    })
  const find = useFindMembers()
  return (
    <Panel title="People" about="Members who may use it themselves.">
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
                label={`Remove ${name}`}
                onClick={() => set({ id: userId, name }, false)}
              />
            </Gate>
          </li>
        ))}
      </ul>
      <Gate on={credential} may="credential.edit">
        <Picker
          aria-label="Add a member"
          placeholder="Add a member…"
          value={null}
          search={find}
          disabled={!credential.viewerCan.includes('credential.edit')}
          empty="No member has this name."
          onValue={(person) => {
            if (person && !credential.members.some(({ userId }) => userId === Number(person.id)))
              set({ id: Number(person.id), name: person.name }, true)
          }}
        />
      </Gate>
    </Panel>
  )
}
