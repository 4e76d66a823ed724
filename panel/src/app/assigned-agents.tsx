// The agents that have a credential, an MCP server or a skill. Each change applies at once and can be undone.
import { Link } from '@tanstack/react-router'
import { X } from 'lucide-react'
import { useCallback } from 'react'
import { useClient } from 'urql'
import { graphql } from '../api/graphql'
import type { Governed } from '../permissions/can'
import { Gate } from '../permissions/gate'
import type { Permission } from '../permissions/names'
import { Avatar } from '../ui/avatar'
import { IconButton } from '../ui/button'
import { Panel } from '../ui/panel'
import { type Choice, Picker } from '../ui/picker'
import { Visible } from '../ui/visible'
import { type Kind, useAssign } from './assigned-agents-calls'
import { useOrg } from './organization'

const FindAgents = graphql(`
  query FindAgents($orgId: Id!, $search: String) {
    agentFeed(orgId: $orgId, search: $search, limit: 20) { data { id name role } }
  }
`)

interface Props {
  kind: Kind
  /** The record in a sentence: "this skill". */
  what: string
  record: Governed & {
    id: number
    agents: readonly { id: number; name: string; avatarUrl?: string | null }[]
  }
  may: Permission
  about?: string
}

/** Finds agents by part of their name, for pickers. */
export function useFindAgents(): (text: string) => Promise<Choice[]> {
  const client = useClient()
  const { id: orgId } = useOrg()
  return useCallback(
    async (text) => {
      const { data } = await client.query(FindAgents, { orgId, search: text.trim() || null }).toPromise()
      return (data?.agentFeed?.data ?? []).map(({ id, name, role }) => ({ id, name, detail: role }))
    },
    [client, orgId],
  )
}

export function AssignedAgents({ kind, what, record, may, about }: Props) {
  const org = useOrg()
  const find = useFindAgents()
  const assign = useAssign(kind)
  const mayEdit = record.viewerCan.includes(may)
  const set = (agent: { id: number; name: string }, has: boolean) =>
    void assign({ record: { id: record.id, name: what }, agent, has })
  return (
    <Panel title="Agents" about={about}>
      {record.agents.length === 0 && <p className="mb-2 text-muted">No agent has {what}.</p>}
      <ul className="mb-2 space-y-1">
        {record.agents.map(({ id, name, avatarUrl }) => (
          <li key={id} className="flex items-center gap-2">
            <Avatar name={name} url={avatarUrl} square size="sm" />
            <Link to="/o/$org/agents/$id" params={{ org: org.id, id }} className="link min-w-0 grow truncate">
              <Visible text={name} />
            </Link>
            <Gate on={record} may={may}>
              <IconButton
                icon={X}
                size="sm"
                label={`Remove ${what} from ${name}`}
                onClick={() => set({ id, name }, false)}
              />
            </Gate>
          </li>
        ))}
      </ul>
      <Gate on={record} may={may}>
        <Picker
          aria-label={`Assign ${what} to an agent`}
          placeholder="Assign to an agent…"
          value={null}
          search={find}
          disabled={!mayEdit}
          empty="No agent has this name."
          onValue={(agent) => {
            if (agent && !record.agents.some(({ id }) => id === Number(agent.id)))
              set({ id: Number(agent.id), name: agent.name }, true)
          }}
        />
      </Gate>
    </Panel>
  )
}
