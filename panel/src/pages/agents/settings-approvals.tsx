// Which actions of an agent need approval.
import { Badge } from '../../ui/badge'
import { NumberInput } from '../../ui/inputs'
import { LinesInput } from '../../ui/lines-input'
import { SectionField, SectionForm } from '../../ui/section-form'
import type { AgentSettings } from './settings'
import { useAgentSection } from './use-agent-section'
import { DEFAULTS, riskInWords } from './words'

export function ApprovalRules({ agent }: { agent: AgentSettings }) {
  const form = useAgentSection(agent, [
    'approvalAskThreshold',
    'approvalBlockThreshold',
    'approvalCategories',
    'approvalTimeoutMinutes',
  ])
  const { values, set } = form
  const { approvalAskThreshold: ask, approvalBlockThreshold: block } = values
  const unenforced = agent.notEnforced
  return (
    <SectionForm
      title="Approvals"
      doc="approvals.md#what-is-asked"
      about="Each action has a risk from 0 to 100. The agent’s limits decide what happens with it."
      form={form}
    >
      <div className="grid gap-4 sm:grid-cols-2">
        <SectionField
          form={form}
          name="approvalAskThreshold"
          label="Ask a person from a risk of"
          doc="approvals.md#risk-rules"
          hint={riskInWords(ask, 'ask')}
          optional
        >
          <Threshold
            value={ask}
            unset={DEFAULTS.ask}
            onValue={(value) => set('approvalAskThreshold', value)}
          />
        </SectionField>
        <SectionField
          form={form}
          name="approvalBlockThreshold"
          label="Block from a risk of"
          hint={riskInWords(block, 'block')}
          optional
        >
          <Threshold
            value={block}
            unset={DEFAULTS.block}
            onValue={(value) => set('approvalBlockThreshold', value)}
          />
        </SectionField>
      </div>
      {ask !== null && block !== null && ask >= block && (
        <p className="text-sm text-warn-text">
          The agent never asks, because blocking begins at a lower risk. Ask from a lower risk.
        </p>
      )}
      <SectionField
        form={form}
        name="approvalCategories"
        label="Always ask for"
        doc="approvals.md#risk-rules"
        hint="Kinds of action in words, one per line, such as payment or deletion."
        optional
        asText={(lines) => (Array.isArray(lines) && lines.length > 0 ? lines.join(', ') : 'nothing')}
      >
        <LinesInput value={values.approvalCategories} onValue={(lines) => set('approvalCategories', lines)} />
      </SectionField>
      {unenforced.length > 0 && (
        <div className="flex flex-wrap items-center gap-1.5 text-sm text-muted">
          {unenforced.map((category) => (
            <Badge key={category} tone="warn">
              {category}
            </Badge>
          ))}
          <span>
            No rule knows {unenforced.length === 1 ? 'this' : 'these'}: the agent is instructed to ask, but
            nothing enforces it.
          </span>
        </div>
      )}
      <div className="sm:max-w-72">
        <SectionField
          form={form}
          name="approvalTimeoutMinutes"
          label="Wait for a decision"
          hint="Without one by then, the request expires and the action is not done."
          optional
        >
          <NumberInput
            unit="minutes"
            value={values.approvalTimeoutMinutes}
            onValue={(value) => set('approvalTimeoutMinutes', value)}
          />
        </SectionField>
      </div>
    </SectionForm>
  )
}

interface ThresholdProps {
  id?: string
  'aria-describedby'?: string
  'aria-invalid'?: boolean
  value: number | null
  /** The slider's position while nothing is set. */
  unset: number
  onValue: (value: number | null) => void
}

/** A number input with a slider. */
function Threshold({ value, unset, onValue, ...field }: ThresholdProps) {
  return (
    <div className="flex items-center gap-3">
      <NumberInput {...field} className="w-20" value={value} onValue={onValue} />
      <input
        type="range"
        aria-label="The same as a slider"
        min={0}
        max={100}
        step={5}
        value={value === null || Number.isNaN(value) ? unset : value}
        onChange={(event) => onValue(Number(event.target.value))}
        className="min-w-0 grow accent-accent"
      />
    </div>
  )
}
