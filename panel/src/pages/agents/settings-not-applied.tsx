// Stored settings without effect yet. Programs may set them; the panel only shows them, so that no one relies on them.
import { Fact, Facts } from '../../ui/panel'
import { words } from '../../ui/status'
import type { AgentSettings } from './settings'

export function NotApplied({ agent }: { agent: AgentSettings }) {
  const rows: [string, string][] = [
    ['Effort', agent.effortOverride ? words(agent.effortOverride) : 'the model’s default'],
    ['Thinking', yesNo(agent.thinkingEnabled)],
    ['HTTP bridge for MCP', yesNo(agent.mcpHttpBridge)],
    ['Requests of other agents', yesNo(agent.hubAvailable)],
    ['Voice', agent.voiceEnabled ? (agent.voiceId ?? 'yes') : 'no'],
  ]
  return (
    <details className="mb-8 rounded-card border border-line px-4 py-3">
      <summary className="font-medium">Settings without effect yet</summary>
      <p className="mt-2 mb-3 text-sm text-muted">
        Programs can store these settings. This version of Muster applies none of them.
      </p>
      <Facts>
        {rows.map(([name, value]) => (
          <Fact key={name} name={name}>
            {value}
          </Fact>
        ))}
      </Facts>
    </details>
  )
}

const yesNo = (value: boolean) => (value ? 'yes' : 'no')
