// A server's load over time: processor, memory and load average as plots, and as a table.
import { ChartLine } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { graphql, type ResultOf } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import { useZone } from '../../ui/clock'
import { Empty } from '../../ui/empty'
import { Select } from '../../ui/inputs'
import { Panel } from '../../ui/panel'
import { LineKey } from '../../ui/plot-frame'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { absolute, stamp } from '../../ui/time-format'
import { AVERAGE, LoadPlot, MAXIMUM } from './load-plot'
import { LoadTable } from './load-table'

const LoadQuery = graphql(`
  query ServerLoad($orgId: Id!, $serverId: Id!, $since: Timestamp!, $before: Timestamp!) {
    serverLoad(orgId: $orgId, serverId: $serverId, since: $since, before: $before) {
      since before cpuAverage cpuMaximum memoryAverage memoryMaximum loadAverage loadMaximum
    }
  }
`)

type Load = NonNullable<ResultOf<typeof LoadQuery>['serverLoad']>[number]

const DAY_MS = 86_400_000
/** The service stores a period as often. */
const PERIOD_MS = 300_000
const SPANS = [
  { value: '1', label: 'Last 24 hours' },
  { value: '7', label: 'Last 7 days' },
  { value: '14', label: 'Last 14 days' },
] as const
type Span = (typeof SPANS)[number]['value']

const percent = (value: number) => `${Math.round(value)} %`
const MEASURES = [
  { name: 'Processor', of: 'cpu', top: 100, format: percent },
  { name: 'Memory', of: 'memory', top: 100, format: percent },
  { name: 'Load average', of: 'load', top: null, format: (value: number) => value.toFixed(2) },
] as const

export function LoadHistory({ serverId }: { serverId: number }) {
  const [span, setSpan] = useState<Span>('1')
  return (
    <Panel
      title="Load over time"
      about="The load average is that of 1 minute. A gap: the host was not connected."
      doc="hosts.md#load-over-time"
      actions={
        <Select
          aria-label="Period"
          className="w-auto"
          options={SPANS}
          value={span}
          onValue={(span) => setSpan(span)}
        />
      }
    >
      <History key={`${serverId} ${span}`} serverId={serverId} days={Number(span)} />
    </Panel>
  )
}

const untilNow = (days: number): [number, number] => {
  const now = Date.now()
  return [now - days * DAY_MS, now]
}

function History({ serverId, days }: { serverId: number; days: number }) {
  const { id: orgId } = useOrg()
  const [asked, ask] = useState(() => untilNow(days))
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === 'visible' && ask(untilNow(days)), PERIOD_MS)
    return () => clearInterval(timer)
  }, [days])
  const [since, before] = asked.map((time) => new Date(time).toISOString()) as [string, string]
  const { data, error, refetch } = useLive({
    query: LoadQuery,
    variables: { orgId, serverId, since, before },
    on: [],
  })
  // While a later period loads, the one before stays.
  const kept = useRef<{ rows: Load[]; range: [number, number] }>(undefined)
  if (data?.serverLoad) kept.current = { rows: data.serverLoad, range: asked }
  if (!kept.current) return error ? <ProblemView error={error} retry={refetch} /> : <ListSkeleton rows={4} />
  return <Plots {...kept.current} isDay={days === 1} />
}

function Plots({ rows, range, isDay }: { rows: Load[]; range: [number, number]; isDay: boolean }) {
  const { timeZone } = useZone()
  if (rows.length === 0) {
    return (
      <div className="rounded-card border border-line">
        <Empty icon={ChartLine} title="Nothing in this period">
          A connected host reports its load every few seconds. The first values are here after five minutes.
        </Empty>
      </div>
    )
  }
  const units = isDay
    ? ({ hour: '2-digit', minute: '2-digit' } as const)
    : ({ day: 'numeric', month: 'short' } as const)
  const short = new Intl.DateTimeFormat(undefined, { ...units, timeZone })
  const measured = MEASURES.map((measure) => ({ ...measure, ...stepsOf(rows, measure.of) }))
  return (
    <>
      <div className="rounded-card border border-line p-4">
        <p className="mb-3 flex flex-wrap gap-4">
          <LineKey look={AVERAGE}>Average</LineKey>
          <LineKey look={MAXIMUM}>Highest</LineKey>
        </p>
        <div className="grid gap-x-8 gap-y-4 lg:grid-cols-3">
          {measured.map(({ name, top, format, average, maximum }) => (
            <div key={name} className="min-w-0">
              <h3 className="text-sm font-medium">{name}</h3>
              <LoadPlot
                label={`${name} over time: a plot of the numbers in the table below`}
                {...{ range, top, average, maximum, format }}
                when={(time) => absolute(time, timeZone)}
                tick={(time) => short.format(time)}
              />
            </div>
          ))}
        </div>
      </div>
      <details className="mt-3">
        <summary className="w-fit cursor-pointer text-sm text-muted">Numbers</summary>
        <div className="mt-2">
          <LoadTable
            label="Load over time, average and highest"
            heads={MEASURES.map(({ name }) => name)}
            rows={rows.map(({ since }, at) => ({
              since: Date.parse(since),
              values: measured.map(({ average, maximum, format }) =>
                [average[at], maximum[at]]
                  .map((step) => (step?.value == null ? 'not measured' : format(step.value)))
                  .join(' · '),
              ),
            }))}
            when={(time) => stamp(time, range[1], timeZone)}
          />
        </div>
      </details>
    </>
  )
}

function stepsOf(rows: readonly Load[], of: (typeof MEASURES)[number]['of']) {
  const steps = (value: (row: Load) => number | null) =>
    rows.map((row) => ({ from: Date.parse(row.since), to: Date.parse(row.before), value: value(row) }))
  return {
    average: steps((row) => row[`${of}Average`]),
    maximum: steps((row) => row[`${of}Maximum`]),
  }
}
