// The hosts an agent may reach, and the tools it may not use.
import { Link } from '@tanstack/react-router'
import { useOrg } from '../../app/organization'
import { Gate } from '../../permissions/gate'
import { Checkbox } from '../../ui/choices'
import { Notice } from '../../ui/notice'
import { SectionForm, SectionPart, SectionSwitch } from '../../ui/section-form'
import type { AgentSettings } from './settings'
import { useAgentSection } from './use-agent-section'

/** The kinds of tools that agents report. */
const KINDS: [string, string][] = [
  ['read', 'Read files'],
  ['edit', 'Change files'],
  ['delete', 'Delete files'],
  ['move', 'Move files'],
  ['search', 'Search'],
  ['execute', 'Run commands'],
  ['fetch', 'Reach other hosts'],
  ['think', 'Think'],
  ['other', 'Everything else'],
]

export function Reach({ agent }: { agent: AgentSettings }) {
  return (
    <>
      <Gate may="network.edit">
        <Network agent={agent} />
      </Gate>
      <Tools agent={agent} />
    </>
  )
}

function Network({ agent }: { agent: AgentSettings }) {
  const org = useOrg()
  const form = useAgentSection(agent, ['networkPrivileged'])
  return (
    <SectionForm
      title="Network"
      doc="hosts.md#networks-that-agents-may-reach"
      about={
        <>
          The agent reaches its model, its MCP servers, the destinations of its credentials, and the{' '}
          <Link to="/o/$org/settings" params={{ org: org.id }} search={{ tab: 'network' }} className="link">
            allowed hosts
          </Link>
          .
        </>
      }
      form={form}
    >
      <SectionSwitch
        form={form}
        name="networkPrivileged"
        label="Unrestricted network"
        hint="Only for what can’t work otherwise. A change takes effect when the agent starts next."
      />
      {form.values.networkPrivileged && (
        <Notice tone="warn">
          The list of allowed hosts does not apply: the agent reaches every host that its server reaches,
          without asking. Data can leave by any route.
        </Notice>
      )}
    </SectionForm>
  )
}

function Tools({ agent }: { agent: AgentSettings }) {
  const form = useAgentSection(agent, ['disabledToolGroups'])
  const servers = agent.mcpServers.map(({ name }) => name)
  // Unknown names stay until someone removes them.
  const others = agent.disabledToolGroups.filter(
    (name) => !servers.includes(name) && !KINDS.some(([kind]) => kind === name),
  )
  const groups: [string, string][] = [
    ...KINDS,
    ...[...servers, ...others].map((name): [string, string] => [name, `MCP server ${name}`]),
  ]
  return (
    <SectionForm
      title="Disabled tools"
      doc="approvals.md#what-is-asked"
      about="Refused at the sandbox boundary: when the agent calls an MCP server, reaches a host, or asks for permission."
      form={form}
    >
      <SectionPart
        form={form}
        name="disabledToolGroups"
        asText={(names) => (names as string[]).join(', ') || 'nothing'}
      >
        <Groups
          groups={groups}
          off={form.values.disabledToolGroups}
          onOff={(off) => form.set('disabledToolGroups', off)}
        />
      </SectionPart>
    </SectionForm>
  )
}

interface GroupsProps {
  groups: readonly [name: string, label: string][]
  off: readonly string[]
  onOff: (off: string[]) => void
  error?: string | null
}

function Groups({ groups, off, onOff, error }: GroupsProps) {
  return (
    <>
      <div className="grid gap-2 sm:grid-cols-2">
        {groups.map(([name, label]) => (
          <Checkbox
            key={name}
            label={label}
            checked={off.includes(name)}
            onChecked={(isOff) => onOff(isOff ? [...off, name] : off.filter((known) => known !== name))}
          />
        ))}
      </div>
      {error && <Notice>{error}</Notice>}
    </>
  )
}
