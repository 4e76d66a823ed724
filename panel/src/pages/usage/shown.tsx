// The chosen numbers: as a plot, whose legend is a filter, and as a table.
import { ChartColumn } from 'lucide-react'
import { useState } from 'react'
import { graphql } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { Chip } from '../../app/filters'
import { useOrg } from '../../app/organization'
import { moneyOf } from '../../app/spending/money'
import { Empty } from '../../ui/empty'
import { Panel } from '../../ui/panel'
import { LineKey } from '../../ui/plot-frame'
import { Visible } from '../../ui/visible'
import { NumbersTable } from './numbers-table'
import { colourAt } from './palette'
import { type Days, daysInMonth, listed } from './period'
import { LINE, Plot } from './plot'
import { type By, type Measure, MOST, REST, type Row, seriesOf } from './series'

export const MEASURES = [
  { value: 'COST', label: 'Cost' },
  { value: 'TOKENS', label: 'Tokens' },
  { value: 'TURNS', label: 'Turns' },
] as const
export const GROUPINGS = [
  { value: 'AGENT', label: 'by agent' },
  { value: 'MODEL', label: 'by model' },
  { value: 'CHANNEL', label: 'by channel' },
  { value: 'CAUSE', label: 'by cause' },
] as const
const BudgetQuery = graphql(`
  query UsageBudget($orgId: Id!, $id: Id!) { agent(orgId: $orgId, id: $id) { id monthlyBudgetMicro } }
`)

interface ShownProps {
  rows: Row[]
  by: By
  measure: Measure
  days: Days
  /** The organization's, for a month. */
  budget: number | null
}

export function Shown({ rows, by, measure, days: { since, before }, budget }: ShownProps) {
  const { currency } = useOrg()
  const [hidden, hide] = useState<readonly string[]>([])
  const days = listed({ since, before })
  const all = seriesOf(rows, days, by, measure).map((series, index) => ({
    ...series,
    colour: colourAt(series.id === REST ? MOST : index),
  }))
  const shown = all.filter(({ id }) => !hidden.includes(id))
  const toggle = (id: string) =>
    hide(hidden.includes(id) ? hidden.filter((each) => each !== id) : [...hidden, id])
  const format = (value: number) =>
    measure === 'COST' ? moneyOf(value, currency) : Math.round(value).toLocaleString()
  const title = `${nameIn(MEASURES, measure)} ${nameIn(GROUPINGS, by)}`
  const own = useBudget(by === 'AGENT' && shown.length === 1 ? shown[0]?.id : undefined)
  const limit = own ?? budget
  const line = measure === 'COST' && limit !== null ? days.map((day) => limit / daysInMonth(day)) : null
  return (
    <>
      <Panel title={`${title}, each day`} about={<About {...{ rows, by, measure }} />}>
        {all.length === 0 ? (
          <div className="rounded-card border border-line">
            <Empty icon={ChartColumn} title="Nothing in this period">
              {measure === 'TURNS'
                ? 'No turns began in this period.'
                : `No ${measure === 'COST' ? 'costs' : 'tokens'} recorded in this period.`}
            </Empty>
          </div>
        ) : (
          <div className="rounded-card border border-line p-4">
            <fieldset className="mb-3 flex flex-wrap items-center gap-2">
              <legend className="sr-only">Shown {nameIn(GROUPINGS, by)}</legend>
              {all.map(({ id, label, colour }) => (
                <Chip key={id} on={!hidden.includes(id)} onToggle={() => toggle(id)}>
                  <svg viewBox="0 0 10 10" className="size-2.5" aria-hidden="true">
                    <rect width="10" height="10" rx="2" style={{ fill: colour }} />
                  </svg>
                  <span className="max-w-56 truncate">
                    <Visible text={label} />
                  </span>
                </Chip>
              ))}
              {line && <BudgetOfADay whose={own === null ? 'organization’s' : 'agent’s'} values={line} />}
            </fieldset>
            <Plot
              label={`${title}, each day from ${since}: a plot of the numbers in the table below`}
              series={shown}
              tick={
                measure === 'COST'
                  ? format
                  : (value) => value.toLocaleString(undefined, { notation: 'compact' })
              }
              {...{ days, line, format }}
            />
          </div>
        )}
      </Panel>
      {shown.length > 0 && (
        <Panel title="Numbers">
          <NumbersTable label={`${title}, each day`} series={shown} {...{ days, format }} />
        </Panel>
      )}
    </>
  )
}

/** An agent's own budget of a month. Null: none. */
function useBudget(id: string | undefined): number | null {
  const agent = Number(id) || 0
  const { data } = useLive({
    query: BudgetQuery,
    variables: { orgId: useOrg().id, id: agent },
    on: ['AGENT'],
    pause: agent === 0,
  })
  return data?.agent?.id === agent ? data.agent.monthlyBudgetMicro : null
}

function BudgetOfADay({ whose, values }: { whose: string; values: number[] }) {
  const { currency } = useOrg()
  const amounts = [...new Set(values.map((value) => moneyOf(value, currency)))]
  return (
    <LineKey look={LINE}>
      The {whose} budget, spread over the days of the month: {amounts.join(' or ')}
    </LineKey>
  )
}

/** The gaps in the numbers. */
function About({ rows, by, measure }: Pick<ShownProps, 'rows' | 'by' | 'measure'>) {
  if (measure === 'TURNS') return 'On the day on which they began.'
  const isOfTurns = by === 'CHANNEL' || by === 'CAUSE'
  const unpriced = measure === 'COST' ? rows.reduce((sum, row) => sum + row.unpriced, 0) : 0
  const noun = `${isOfTurns ? 'turn' : 'call'}${unpriced === 1 ? '' : 's'}`
  const parts = [
    isOfTurns && 'Calls that can’t be attributed to a turn are missing.',
    unpriced > 0 && `The cost of ${unpriced.toLocaleString()} ${noun} is unknown and not included.`,
  ]
  return parts.filter(Boolean).join(' ') || 'In the organization’s time zone.'
}

const nameIn = (options: readonly { value: string; label: string }[], value: string) =>
  options.find((option) => option.value === value)?.label ?? value
