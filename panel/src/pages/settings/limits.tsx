// The plan, and how much of it is used.
import { Meter } from '../../ui/meter'
import { Fact, Facts, Panel } from '../../ui/page'
import { words } from '../../ui/status'
import type { Settings } from './settings-page'

const MIB = 1024 * 1024

export function Limits({ settings: { plan, limits, storedBytes } }: { settings: Settings }) {
  if (!limits) return null
  const stored = Number(storedBytes) / MIB
  const text = `${size(stored)} of ${size(limits.maxStoredMib)}`
  const rows: [string, number][] = [
    ['Agents', limits.maxAgents],
    ['Channels per agent', limits.channelsPerAgent],
    ['Servers', limits.maxServers],
    ['Images', limits.maxImages],
    ['Skills', limits.maxSkills],
    ['MCP servers', limits.maxMcpServers],
    ['Credentials', limits.maxCredentials],
    ['Members', limits.maxMembers],
    ['Open invitations', limits.maxOpenInvitations],
    ['Service tokens', limits.maxServiceTokens],
  ]
  return (
    <>
      <Panel title={words(plan)} about="Your operator changes the plan.">
        <Facts>
          {rows.map(([name, most]) => (
            <Fact key={name} name={name}>
              <span className="tabular-nums">at most {most.toLocaleString()}</span>
            </Fact>
          ))}
        </Facts>
      </Panel>
      <Panel title="Storage" about="Attachments, pictures and skills.">
        <p className="mb-1.5 text-sm tabular-nums">{text}</p>
        <Meter label="Storage used" value={stored} most={limits.maxStoredMib} text={text} />
      </Panel>
    </>
  )
}

/** Mebibytes as people read them. */
function size(mib: number): string {
  const units = ['MiB', 'GiB', 'TiB']
  let [value, unit] = [mib, 0]
  while (value >= 1024 && unit < units.length - 1) [value, unit] = [value / 1024, unit + 1]
  return `${value.toLocaleString(undefined, { maximumFractionDigits: 1 })} ${units[unit]}`
}
