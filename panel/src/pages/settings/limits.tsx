// The limits and their usage.
import { graphql } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import { Meter } from '../../ui/meter'
import { Fact, Facts, Panel } from '../../ui/panel'
import type { Settings } from './settings-page'

const Use = graphql(`
  query OrganizationUse($orgId: Id!) {
    organization(orgId: $orgId) {
      id
      used { agents servers images skills mcpServers credentials members openInvitations serviceTokens }
    }
  }
`)

const MIB = 1024 * 1024

export function Limits({ settings: { limits, storedBytes } }: { settings: Settings }) {
  const { data } = useLive({
    query: Use,
    variables: { orgId: useOrg().id },
    on: [
      'AGENT',
      'SERVER',
      'IMAGE',
      'SKILL',
      'MCP_SERVER',
      'CREDENTIAL',
      'MEMBER',
      'INVITATION',
      'SERVICE_TOKEN',
    ],
  })
  const used = data?.organization?.used
  if (!limits) return null
  const stored = Number(storedBytes) / MIB
  const rows: [name: string, used: number | undefined, most: number][] = [
    ['Agents', used?.agents, limits.maxAgents],
    ['Servers', used?.servers, limits.maxServers],
    ['Images', used?.images, limits.maxImages],
    ['Skills', used?.skills, limits.maxSkills],
    ['MCP servers', used?.mcpServers, limits.maxMcpServers],
    ['Credentials', used?.credentials, limits.maxCredentials],
    ['Members', used?.members, limits.maxMembers],
    ['Open invitations', used?.openInvitations, limits.maxOpenInvitations],
    ['Service tokens', used?.serviceTokens, limits.maxServiceTokens],
  ]
  return (
    <>
      <Panel title="Records" doc="limits.md#plans" about="The installation’s operator sets the limits.">
        <Facts>
          {rows.map(([name, count, most]) => (
            <Fact key={name} name={name}>
              <Part name={name} used={count} most={most} />
            </Fact>
          ))}
          <Fact name="Channels per agent">
            <span className="tabular-nums">at most {limits.channelsPerAgent.toLocaleString()}</span>
          </Fact>
        </Facts>
      </Panel>
      <Panel title="Storage" about="Attachments, pictures and skills.">
        <Part name="Storage" used={stored} most={limits.maxStoredMib} text={size} />
      </Panel>
    </>
  )
}

interface PartProps {
  name: string
  /** Undefined while it is being counted. */
  used: number | undefined
  most: number
  text?: (amount: number) => string
}

function Part({ name, used, most, text = (amount) => amount.toLocaleString() }: PartProps) {
  if (used === undefined) return <span className="tabular-nums">at most {text(most)}</span>
  const said = `${text(used)} of ${text(most)}`
  return (
    <>
      <p className="mb-1 text-sm tabular-nums">{said}</p>
      <Meter label={`${name} used`} value={used} most={most} text={said} />
    </>
  )
}

/** Formats mebibytes. */
function size(mib: number): string {
  const units = ['MiB', 'GiB', 'TiB']
  let [value, unit] = [mib, 0]
  while (value >= 1024 && unit < units.length - 1) [value, unit] = [value / 1024, unit + 1]
  return `${value.toLocaleString(undefined, { maximumFractionDigits: 1 })} ${units[unit]}`
}
