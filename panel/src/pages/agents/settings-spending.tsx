// An agent's monthly budget and hourly token limit.
import { useOrg } from '../../app/organization'
import { ACTIONS, actionOf, moneyOf } from '../../app/spending/money'
import { MoneyInput } from '../../app/spending/money-input'
import { Gate } from '../../permissions/gate'
import { NumberInput, Select } from '../../ui/inputs'
import { SectionField, SectionForm } from '../../ui/section-form'
import type { AgentSettings } from './settings'
import { useAgentSection } from './use-agent-section'

const MODES = [
  { value: 'INHERIT', label: 'The organization’s default' },
  { value: 'CUSTOM', label: 'Own limit' },
  { value: 'OFF', label: 'None' },
] as const

export function SpendingRules({ agent }: { agent: AgentSettings }) {
  return (
    <>
      <Gate may="organization.edit">
        <Budget agent={agent} />
      </Gate>
      <CostGuard agent={agent} />
    </>
  )
}

function Budget({ agent }: { agent: AgentSettings }) {
  const { currency } = useOrg()
  const form = useAgentSection(agent, ['monthlyBudgetMicro', 'budgetAction'])
  const { values, set } = form
  return (
    <SectionForm
      title="Budget"
      doc="money.md#limits"
      about="The most that the agent may spend in a calendar month. The organization’s budget applies as well."
      form={form}
    >
      <div className="grid gap-4 sm:grid-cols-2">
        <SectionField
          form={form}
          name="monthlyBudgetMicro"
          label="A month"
          hint="Empty: no own budget."
          optional
          asText={(micro) => moneyOf(Number(micro), currency)}
        >
          <MoneyInput
            value={values.monthlyBudgetMicro}
            onValue={(micro) => set('monthlyBudgetMicro', micro)}
          />
        </SectionField>
        <SectionField form={form} name="budgetAction" label="When the budget is used up" asText={actionOf}>
          <Select
            value={values.budgetAction}
            options={ACTIONS}
            onValue={(action) => set('budgetAction', action)}
          />
        </SectionField>
      </div>
    </SectionForm>
  )
}

function CostGuard({ agent }: { agent: AgentSettings }) {
  const form = useAgentSection(agent, ['costGuardMode', 'costGuardTokensPerHour', 'costGuardAction'])
  const { values, set } = form
  return (
    <SectionForm
      title="Cost guard"
      doc="money.md#limits"
      about="The most tokens that the agent may use within 60 minutes: read, written and cached."
      form={form}
    >
      <SectionField form={form} name="costGuardMode" label="Limit">
        <Select value={values.costGuardMode} options={MODES} onValue={(mode) => set('costGuardMode', mode)} />
      </SectionField>
      {values.costGuardMode === 'CUSTOM' && (
        <div className="grid gap-4 sm:grid-cols-2">
          <SectionField form={form} name="costGuardTokensPerHour" label="An hour">
            <NumberInput
              unit="tokens"
              value={values.costGuardTokensPerHour}
              onValue={(tokens) => set('costGuardTokensPerHour', tokens)}
            />
          </SectionField>
          <SectionField form={form} name="costGuardAction" label="When they are used up" asText={actionOf}>
            <Select
              value={values.costGuardAction}
              options={ACTIONS}
              onValue={(action) => set('costGuardAction', action)}
            />
          </SectionField>
        </div>
      )}
    </SectionForm>
  )
}
