// Sections of an agent's settings: its resource limits, its restarts, and when its session starts over.
import { NumberInput, Select } from '../../ui/inputs'
import { SectionField, SectionForm } from '../../ui/section-form'
import type { AgentSettings } from './settings'
import { useAgentSection } from './use-agent-section'

const MODES = [
  { value: 'INHERIT', label: 'The organization’s default' },
  { value: 'CUSTOM', label: 'Own limit' },
  { value: 'OFF', label: 'Never' },
] as const

const POLICIES = [
  { value: 'ON_FAILURE', label: 'After a failure' },
  { value: 'ALWAYS', label: 'After every exit' },
  { value: 'NEVER', label: 'Never' },
] as const

export function Limits({ agent }: { agent: AgentSettings }) {
  const limits = useAgentSection(agent, ['cpuOverride', 'memoryMbOverride'])
  return (
    <SectionForm
      title="Limits"
      doc="hosts.md#isolation-and-what-is-not-bounded"
      about="For agents in containers. Empty: the server’s default. A change takes effect when the agent starts next."
      form={limits}
    >
      <div className="grid gap-4 sm:grid-cols-2">
        <SectionField form={limits} name="cpuOverride" label="Processor" optional>
          <NumberInput
            unit="cores"
            value={limits.values.cpuOverride}
            onValue={(value) => limits.set('cpuOverride', value)}
          />
        </SectionField>
        <SectionField form={limits} name="memoryMbOverride" label="Memory" optional>
          <NumberInput
            unit="MiB"
            value={limits.values.memoryMbOverride}
            onValue={(value) => limits.set('memoryMbOverride', value)}
          />
        </SectionField>
      </div>
    </SectionForm>
  )
}

export function Restarts({ agent }: { agent: AgentSettings }) {
  const restarts = useAgentSection(agent, ['restartPolicy'])
  return (
    <SectionForm
      title="Restarts"
      doc="agents.md#when-an-agent-ends"
      about="An agent that exits without being stopped is restarted: up to five times with growing delays, and without limit if its server restarted."
      form={restarts}
    >
      <SectionField form={restarts} name="restartPolicy" label="Restart the agent">
        <Select
          value={restarts.values.restartPolicy}
          options={POLICIES}
          onValue={(policy) => restarts.set('restartPolicy', policy)}
        />
      </SectionField>
    </SectionForm>
  )
}

export function Sessions({ agent }: { agent: AgentSettings }) {
  const sessions = useAgentSection(agent, ['sessionResetMode', 'sessionResetTokens'])
  return (
    <SectionForm
      title="Sessions"
      about="What an agent remembers of a conversation grows with it. A session that is too long starts over with its next turn."
      form={sessions}
    >
      <div className="grid gap-4 sm:grid-cols-2">
        <SectionField form={sessions} name="sessionResetMode" label="Start over">
          <Select
            value={sessions.values.sessionResetMode}
            options={MODES}
            onValue={(mode) => sessions.set('sessionResetMode', mode)}
          />
        </SectionField>
        {sessions.values.sessionResetMode === 'CUSTOM' && (
          <SectionField form={sessions} name="sessionResetTokens" label="At">
            <NumberInput
              unit="tokens"
              value={sessions.values.sessionResetTokens}
              onValue={(value) => sessions.set('sessionResetTokens', value)}
            />
          </SectionField>
        )}
      </div>
    </SectionForm>
  )
}
