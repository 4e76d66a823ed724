// Usage: cost, tokens and turns by day, as a plot, as a table, and as a file.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { ChartColumn, Download } from 'lucide-react'
import { useState } from 'react'
import { graphql, type ResultOf } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { Chip } from '../../app/filters'
import { useOrg } from '../../app/organization'
import { moneyOf } from '../../app/spending/money'
import { SpentThisMonth } from '../../app/spending/spent'
import { ActionButton } from '../../ui/actions'
import { Empty } from '../../ui/empty'
import { Select } from '../../ui/inputs'
import { PageBody, PageHeader, Panel } from '../../ui/page'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { Visible } from '../../ui/visible'
import { csvOf } from './csv'
import { NumbersTable } from './numbers-table'
import { colourAt } from './palette'
import { type Days, dayIn, daysInMonth, daysOf, listed } from './period'
import { LINE, Plot } from './plot'
import { type By, linesOf, type Measure, MOST, type Row, seriesOf } from './series'

const UsageQuery = graphql(`
  query Usage($orgId: Id!, $by: UsageGrouping!, $since: String!, $before: String!) {
    usage(orgId: $orgId, by: $by, since: $since, before: $before) {
      day key label turns unpriced inputTokens outputTokens cacheReadTokens cacheWriteTokens costMicro
    }
    organization(orgId: $orgId) {
      id monthlyBudgetMicro
      spending { costMicro allowedMicro leasedMicro tokens }
    }
  }
`)

type Organization = NonNullable<ResultOf<typeof UsageQuery>['organization']>

const MEASURES = [
  { value: 'COST', label: 'Cost' },
  { value: 'TOKENS', label: 'Tokens' },
  { value: 'TURNS', label: 'Turns' },
] as const
const GROUPINGS = [
  { value: 'AGENT', label: 'by agent' },
  { value: 'MODEL', label: 'by model' },
  { value: 'CHANNEL', label: 'by channel' },
  { value: 'CAUSE', label: 'by cause' },
] as const
const PERIODS = [
  { value: 'DAYS_30', label: 'Last 30 days' },
  { value: 'DAYS_90', label: 'Last 90 days' },
  { value: 'MONTH', label: 'This month' },
  { value: 'LAST_MONTH', label: 'Last month' },
] as const
const SELECT = 'w-auto'

export function UsagePage() {
  const org = useOrg()
  const search = useSearch({ from: '/inside/o/$org/usage' })
  const navigate = useNavigate({ from: '/o/$org/usage' })
  const set = (change: Partial<typeof search>) =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true })
  const { measure = 'COST', by = 'AGENT', period = 'DAYS_30' } = search
  const days = daysOf(period, dayIn(org.timezone, Date.now()))
  const { data, error, refetch } = useLive({
    query: UsageQuery,
    variables: { orgId: org.id, by, ...days },
    on: ['ORGANIZATION'],
  })
  const rows = data?.usage
  return (
    <>
      <PageHeader
        title="Usage"
        actions={
          <ActionButton
            icon={Download}
            disabled={!rows?.length}
            action={{
              id: 'usage.csv',
              label: 'Download the usage as CSV',
              group: 'Usage',
              also: 'export table spreadsheet',
              refused: null,
              run: () =>
                download(csvOf(linesOf(rows ?? [], by, org.currency)), `usage-${org.id}-${days.since}.csv`),
            }}
          >
            Download CSV
          </ActionButton>
        }
      >
        <div className="flex flex-wrap gap-2 pb-2">
          <Select
            aria-label="What to show"
            className={SELECT}
            options={MEASURES}
            value={measure}
            onValue={(measure) => set({ measure })}
          />
          <Select
            aria-label="Grouping"
            className={SELECT}
            options={GROUPINGS}
            value={by}
            onValue={(by) => set({ by })}
          />
          <Select
            aria-label="Period"
            className={SELECT}
            options={PERIODS}
            value={period}
            onValue={(period) => set({ period })}
          />
        </div>
      </PageHeader>
      <PageBody>
        <div className="w-full max-w-6xl px-4 py-6 sm:px-6">
          {error && !rows ? (
            <ProblemView error={error} retry={refetch} />
          ) : !rows || !data.organization ? (
            <ListSkeleton rows={8} />
          ) : (
            <>
              <Month organization={data.organization} />
              <Shown
                // Others are shown with another grouping.
                key={by}
                rows={rows}
                {...{ by, measure, days }}
                budget={data.organization.monthlyBudgetMicro}
              />
            </>
          )}
        </div>
      </PageBody>
    </>
  )
}

function Month({ organization: { spending, monthlyBudgetMicro } }: { organization: Organization }) {
  if (!spending) return null
  return (
    <Panel title="Month so far">
      <div className="space-y-2 rounded-card border border-line p-4">
        <SpentThisMonth spending={spending} budget={monthlyBudgetMicro} />
        <p className="text-sm text-muted tabular-nums">
          {Number(spending.tokens).toLocaleString()} tokens this month
        </p>
      </div>
    </Panel>
  )
}

interface ShownProps {
  rows: Row[]
  by: By
  measure: Measure
  days: Days
  /** The organization's, for a month. */
  budget: number | null
}

function Shown({ rows, by, measure, days: { since, before }, budget }: ShownProps) {
  const { currency } = useOrg()
  const [hidden, hide] = useState<readonly string[]>([])
  const days = listed({ since, before })
  const all = seriesOf(rows, days, by, measure).map((series, index) => ({
    ...series,
    colour: colourAt(series.id === 'other' ? MOST : index),
  }))
  const shown = all.filter(({ id }) => !hidden.includes(id))
  const toggle = (id: string) =>
    hide(hidden.includes(id) ? hidden.filter((each) => each !== id) : [...hidden, id])
  const format = (value: number) =>
    measure === 'COST' ? moneyOf(value, currency) : Math.round(value).toLocaleString()
  const title = `${nameIn(MEASURES, measure)} ${nameIn(GROUPINGS, by)}`
  const line = measure === 'COST' && budget !== null ? days.map((day) => budget / daysInMonth(day)) : null
  return (
    <>
      <Panel title={`${title}, each day`} about={<About {...{ rows, by, measure }} />}>
        {all.length === 0 ? (
          <div className="rounded-card border border-line">
            <Empty icon={ChartColumn} title="Nothing in this period">
              {measure === 'TURNS'
                ? 'No turn began in these days.'
                : `In these days ${measure === 'COST' ? 'nothing of a known cost' : 'no token'} was used.`}
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
              {line && <BudgetOfADay values={line} currency={currency} />}
            </fieldset>
            <Plot
              label={`${title}, each day from ${since}: a plot of the numbers in the table below`}
              series={shown}
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

function BudgetOfADay({ values, currency }: { values: number[]; currency: string }) {
  const amounts = [...new Set(values.map((value) => moneyOf(value, currency)))]
  return (
    <span className="inline-flex items-center gap-1.5 text-sm text-muted">
      <svg viewBox="0 0 20 4" className="h-1 w-5" aria-hidden="true">
        <line x2="20" y1="2" y2="2" {...LINE} />
      </svg>
      The month’s budget, spread over its days: {amounts.join(' or ')}
    </span>
  )
}

/** What the numbers leave out. */
function About({ rows, by, measure }: Pick<ShownProps, 'rows' | 'by' | 'measure'>) {
  if (measure === 'TURNS') return 'On the day on which they began.'
  const isOfTurns = by === 'CHANNEL' || by === 'CAUSE'
  const unpriced = measure === 'COST' ? rows.reduce((sum, row) => sum + row.unpriced, 0) : 0
  const noun = `${isOfTurns ? 'turn' : 'call'}${unpriced === 1 ? '' : 's'}`
  const parts = [
    isOfTurns && 'Calls that can’t be attributed to a turn are missing.',
    unpriced > 0 && `The cost of ${unpriced.toLocaleString()} ${noun} is unknown, and missing.`,
  ]
  return parts.filter(Boolean).join(' ') || 'In the organization’s time zone.'
}

const nameIn = (options: readonly { value: string; label: string }[], value: string) =>
  options.find((option) => option.value === value)?.label ?? value

function download(text: string, name: string) {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([text], { type: 'text/csv' }))
  link.download = name
  link.click()
  // The browser reads it after the click.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}
