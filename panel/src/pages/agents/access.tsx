// An agent's credentials, MCP servers and skills, assigned and unassigned here. Each change applies at once and can be
// undone.
import { Link } from '@tanstack/react-router'
import { X } from 'lucide-react'
import { useCallback, useState } from 'react'
import { useClient } from 'urql'
import { graphql } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { CREDENTIAL_APPLIES, type Kind, useAssign } from '../../app/assigned-agents-calls'
import { McpStates } from '../../app/mcp-states'
import { useOrg } from '../../app/organization'
import type { Governed } from '../../permissions/can'
import { Gate } from '../../permissions/gate'
import { IconButton } from '../../ui/button'
import { Panel } from '../../ui/panel'
import { type Choice, Picker } from '../../ui/picker'
import { Skeleton } from '../../ui/skeleton'
import { Visible } from '../../ui/visible'
import { findCredentials, findMcpServers, findSkills } from './access-calls'
import type { AgentRecord } from './agent-page'

const AccessQuery = graphql(`
  query AgentAccess($orgId: Id!, $id: Id!) {
    agent(orgId: $orgId, id: $id) {
      id
      credentials { id name kind viewerCan }
      mcpServers { id name viewerCan }
      mcpServerStates { status error stderr tools reportedAt mcpServer { id name } }
      skills { id name viewerCan }
    }
  }
`)

const PARTS = {
  credential: {
    title: 'Credentials',
    one: 'a credential',
    may: 'credential.edit',
    to: '/o/$org/credentials',
    find: findCredentials,
    hint: CREDENTIAL_APPLIES,
  },
  mcp: {
    title: 'MCP servers',
    one: 'an MCP server',
    may: 'mcp.edit',
    to: '/o/$org/mcp-servers',
    find: findMcpServers,
    hint: 'Tools that the agent may call.',
  },
  skill: {
    title: 'Skills',
    one: 'a skill',
    may: 'skill.edit',
    to: '/o/$org/skills',
    find: findSkills,
    hint: 'Instructions that the agent reads when needed.',
  },
} as const

type Item = Governed & { id: number; name: string }

export function Access({ agent }: { agent: AgentRecord }) {
  const { id: orgId } = useOrg()
  const { data, refetch } = useLive({
    query: AccessQuery,
    variables: { orgId, id: agent.id },
    on: ({ kind, id }) =>
      (kind === 'AGENT' && id === agent.id) ||
      kind === 'CREDENTIAL' ||
      kind === 'MCP_SERVER' ||
      kind === 'SKILL',
  })
  const found = data?.agent
  const part = (kind: Kind, items: readonly Item[] | undefined) => (
    <Part key={kind} kind={kind} agent={agent} items={items} onChanged={refetch} />
  )
  return (
    <Panel title="Access" doc="tools.md">
      <div className="space-y-5 rounded-card border border-line p-4">
        {part('credential', found?.credentials)}
        {part('mcp', found?.mcpServers)}
        <McpStates states={found?.mcpServerStates ?? []} nameOf={({ mcpServer }) => mcpServer?.name} />
        {part('skill', found?.skills)}
      </div>
    </Panel>
  )
}

interface PartProps {
  kind: Kind
  agent: AgentRecord
  items: readonly Item[] | undefined
  onChanged: () => void
}

function Part({ kind, agent, items, onChanged }: PartProps) {
  const org = useOrg()
  const client = useClient()
  const { title, one, may, to, find, hint } = PARTS[kind]
  const assign = useAssign(kind)
  const [busy, setBusy] = useState<number | null>(null)
  const set = async (record: { id: number; name: string }, has: boolean) => {
    setBusy(record.id)
    await assign({ record, agent, has })
    setBusy(null)
    onChanged()
  }
  const search = useCallback(async (text: string) => find(client, org.id, text), [client, org.id, find])
  const mayAdd = org.can(may)
  return (
    <section aria-label={title}>
      <h3 className="text-sm font-medium">{title}</h3>
      <p className="mb-1.5 text-xs text-muted">{hint}</p>
      {!items && <Skeleton className="w-1/2" />}
      {items?.length === 0 && <p className="mb-1.5 text-sm text-muted">Nothing yet.</p>}
      <ul className="mb-1.5">
        {items?.map((item) => (
          <li key={item.id} className="flex items-center gap-2">
            <Link
              to={to}
              params={{ org: org.id }}
              search={{ peek: item.id } as never}
              className="link min-w-0 grow truncate"
            >
              <Visible text={item.name} />
            </Link>
            <Gate on={item} may={may}>
              <IconButton
                icon={X}
                size="sm"
                label={`Remove ${item.name} from ${agent.name}`}
                busy={busy === item.id}
                onClick={() => void set(item, false)}
              />
            </Gate>
          </li>
        ))}
      </ul>
      <Gate may={may}>
        <Picker
          aria-label={`Add ${one} to ${agent.name}`}
          placeholder={`Add ${one}…`}
          value={null}
          search={search}
          disabled={!mayAdd}
          empty="Nothing has this name."
          onValue={(choice: Choice | null) => {
            if (choice && !items?.some(({ id }) => id === Number(choice.id)))
              void set({ id: Number(choice.id), name: choice.name }, true)
          }}
        />
      </Gate>
    </section>
  )
}
