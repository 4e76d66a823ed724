// Models and money: agents' keys, budgets, spending, and the content of traces.
import { useState } from 'react'
import { graphql } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { AllowMore } from '../../app/spending/allow-more'
import { ACTIONS, actionOf, moneyOf } from '../../app/spending/money'
import { MoneyInput } from '../../app/spending/money-input'
import { SpentThisMonth } from '../../app/spending/spent'
import { Button } from '../../ui/button'
import { NumberInput, Select, TextInput } from '../../ui/inputs'
import { Panel } from '../../ui/panel'
import { SectionField, SectionForm, SectionSwitch } from '../../ui/section-form'
import { ModelCredentials } from './model-credentials'
import { Prices } from './prices'
import type { Settings } from './settings-page'
import { useOrganizationSection } from './use-organization-section'

const SpendingQuery = graphql(`
  query OrganizationSpending($orgId: Id!) {
    organization(orgId: $orgId) { id spending { costMicro allowedMicro leasedMicro tokens } }
  }
`)

export function Money({ settings }: { settings: Settings }) {
  return (
    <>
      <ModelCredentials />
      <Spent settings={settings} />
      <Budget settings={settings} />
      <CostGuard settings={settings} />
      <Traces settings={settings} />
      <Prices />
    </>
  )
}

function Spent({ settings: { id, monthlyBudgetMicro } }: { settings: Settings }) {
  const [allowing, allow] = useState(false)
  const { data } = useLive({
    query: SpendingQuery,
    variables: { orgId: id },
    on: ['ORGANIZATION', 'TURN', 'APPROVAL'],
  })
  const spending = data?.organization?.spending
  if (!spending) return null
  return (
    <Panel
      title="Spent"
      actions={
        monthlyBudgetMicro !== null && (
          <Button size="sm" onClick={() => allow(true)}>
            Allow more this month
          </Button>
        )
      }
    >
      <div className="rounded-card border border-line p-4">
        <SpentThisMonth spending={spending} budget={monthlyBudgetMicro} />
        <p className="mt-1 text-xs text-muted tabular-nums">
          {Number(spending.tokens).toLocaleString()} measured tokens of all kinds this month
        </p>
      </div>
      {allowing && <AllowMore kind="money" onClose={() => allow(false)} />}
    </Panel>
  )
}

function Budget({ settings }: { settings: Settings }) {
  const form = useOrganizationSection(settings, ['monthlyBudgetMicro', 'budgetAction', 'currency'])
  const { values, set } = form
  const inWords = (micro: unknown) => moneyOf(Number(micro), values.currency)
  return (
    <SectionForm
      title="Budget"
      doc="money.md#limits"
      about="What all agents together may spend in a calendar month. Agents may also have their own budgets."
      form={form}
    >
      <div className="grid gap-4 sm:grid-cols-2">
        <SectionField
          form={form}
          name="monthlyBudgetMicro"
          label="A month"
          hint="Empty: no budget. With one, calls of models without a price are refused."
          optional
          asText={inWords}
        >
          <MoneyInput
            value={values.monthlyBudgetMicro}
            onValue={(micro) => set('monthlyBudgetMicro', micro)}
          />
        </SectionField>
        <SectionField
          form={form}
          name="currency"
          label="Currency"
          hint="Three letters, such as USD. Only prices in it count. Changing it converts nothing."
        >
          <TextInput
            value={values.currency}
            onValue={(currency) => set('currency', currency.toUpperCase())}
            maxLength={3}
            autoComplete="off"
            spellCheck={false}
          />
        </SectionField>
      </div>
      <SectionField form={form} name="budgetAction" label="When it is used up" asText={actionOf}>
        <Select
          value={values.budgetAction}
          options={ACTIONS}
          onValue={(action) => set('budgetAction', action)}
        />
      </SectionField>
    </SectionForm>
  )
}

function CostGuard({ settings }: { settings: Settings }) {
  const form = useOrganizationSection(settings, ['costGuardTokensPerHour', 'costGuardAction'])
  const { values, set } = form
  return (
    <SectionForm
      title="Cost guard"
      doc="money.md#limits"
      about="Stops an agent stuck in a loop: how many tokens each may use within 60 minutes. Counts tokens read, written and cached."
      form={form}
    >
      <div className="grid gap-4 sm:grid-cols-2">
        <SectionField
          form={form}
          name="costGuardTokensPerHour"
          label="Each agent, an hour"
          hint="Empty: no limit. Agents may have their own."
          optional
        >
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
    </SectionForm>
  )
}

function Traces({ settings }: { settings: Settings }) {
  const form = useOrganizationSection(settings, ['traceContent'])
  return (
    <SectionForm title="Traces" doc="traces.md" form={form}>
      <SectionSwitch
        form={form}
        name="traceContent"
        label="Put prompts and answers into traces"
        hint="Everyone with access to the traces can then read what people and agents said. Otherwise traces hold only names, times and numbers."
      />
    </SectionForm>
  )
}
