// Stacked bars by day. The table has the same numbers.
import { scaleBand, scaleLinear } from 'd3-scale'
import { PlotFrame, STROKE } from '../../ui/plot-frame'
import { shortDay } from './period'
import type { Series } from './series'

export interface Coloured extends Series {
  colour: string
}

interface Props {
  label: string
  days: string[]
  series: Coloured[]
  /** Drawn across the bars: its value on each day. */
  line: number[] | null
  format: (value: number) => string
  /** The same, short. */
  tick: (value: number) => string
}

const TICKS = 4
const LABELS = 6

export function Plot({ label, days, series, line, format, tick: short }: Props) {
  const totals = days.map((_, at) => series.reduce((sum, { values }) => sum + (values[at] ?? 0), 0))
  const most = Math.max(...totals, ...(line ?? []), 0)
  // In percent of the plot, which is stretched to its place.
  const y = scaleLinear()
    .domain([0, most || 1])
    .nice(TICKS)
    .range([100, 0])
  const x = scaleBand().domain(days).range([0, 100]).paddingInner(0.2).paddingOuter(0.1)
  const values = y
    .ticks(TICKS)
    .filter(Number.isInteger)
    .map((tick) => ({ at: y(tick), text: short(tick) }))
  const every = Math.ceil(days.length / LABELS)
  const labels = days
    .filter((_, at) => at % every === 0)
    .map((day) => ({ at: x(day) ?? 0, text: shortDay(day) }))
    .filter(({ at }) => at < 90)
  return (
    <PlotFrame {...{ label, values, labels }}>
      {days.map((day, at) => (
        <Bar key={day} day={day} at={at} series={series} total={totals[at] ?? 0} {...{ x, y, format }} />
      ))}
      {line && <path d={stepped(line, y)} {...STROKE} {...LINE} />}
    </PlotFrame>
  )
}

/** The look of the budget, in the plot and in its legend. */
export const LINE = { stroke: 'var(--ink)', strokeWidth: 1.5, strokeDasharray: '5 4' } as const

interface BarProps {
  day: string
  at: number
  series: Coloured[]
  total: number
  x: ReturnType<typeof scaleBand<string>>
  y: ReturnType<typeof scaleLinear<number, number>>
  format: (value: number) => string
}

function Bar({ day, at, series, total, x, y, format }: BarProps) {
  let below = 0
  const parts = series.flatMap(({ id, label, colour, values }) => {
    const value = values[at] ?? 0
    if (value === 0) return []
    below += value
    return [{ id, label, colour, value, top: y(below), bottom: y(below - value) }]
  })
  const each = parts.map(({ label, value }) => `${label} ${format(value)}`)
  const tip = [`${shortDay(day)}: ${format(total)}`, ...(each.length > 1 ? each : [])].join(' · ')
  const left = x(day) ?? 0
  return (
    <g data-tip={tip}>
      <rect
        x={left - (x.step() - x.bandwidth()) / 2}
        width={x.step()}
        y={0}
        height={100}
        fill="transparent"
      />
      {parts.map(({ id, colour, top, bottom }) => (
        <rect
          key={id}
          x={left}
          width={x.bandwidth()}
          y={top}
          height={bottom - top}
          // A gap between equal colours, and where colours are not seen.
          stroke="var(--canvas)"
          vectorEffect="non-scaling-stroke"
          style={{ fill: colour }}
        />
      ))}
    </g>
  )
}

/** A line over each day, as a path. */
function stepped(values: number[], y: BarProps['y']): string {
  const steps = values.map((value, at) => `V${y(value)}H${(100 * (at + 1)) / values.length}`)
  return `M0,${y(values[0] ?? 0)}${steps.join('')}`
}
