// Usage: cost, tokens and turns by day, as a plot, as a table, and as a file.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { Download } from 'lucide-react'
import { graphql, type ResultOf } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { FilterBar } from '../../app/filters'
import { useOrg } from '../../app/organization'
import { SpentThisMonth } from '../../app/spending/spent'
import { ActionButton } from '../../ui/actions'
import { downloadText } from '../../ui/download'
import { PageBody, PageHeader } from '../../ui/page'
import { Panel } from '../../ui/panel'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { ChoiceMenu } from './choice-menu'
import { csvOf } from './csv'
import { dayIn, daysOf } from './period'
import { linesOf } from './series'
import { GROUPINGS, MEASURES, Shown } from './shown'

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

const PERIODS = [
  { value: 'DAYS_30', label: 'Last 30 days' },
  { value: 'DAYS_90', label: 'Last 90 days' },
  { value: 'MONTH', label: 'This month' },
  { value: 'LAST_MONTH', label: 'Last month' },
] as const

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
        doc="panel.md#money-and-network"
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
              run: () => {
                const text = csvOf(linesOf(rows ?? [], by, org.currency))
                downloadText(text, 'text/csv', `usage-${org.id}-${days.since}.csv`)
              },
            }}
          >
            Download CSV
          </ActionButton>
        }
      >
        <FilterBar filters={{ measure: search.measure, by: search.by, period: search.period }} onChange={set}>
          <ChoiceMenu
            label="Measure"
            options={MEASURES}
            value={measure}
            onValue={(measure) => set({ measure })}
          />
          <ChoiceMenu label="Grouping" options={GROUPINGS} value={by} onValue={(by) => set({ by })} />
          <ChoiceMenu label="Period" options={PERIODS} value={period} onValue={(period) => set({ period })} />
        </FilterBar>
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
          {Number(spending.tokens).toLocaleString()} measured tokens this month. Budgets don’t count what
          agents report themselves.
        </p>
      </div>
    </Panel>
  )
}
