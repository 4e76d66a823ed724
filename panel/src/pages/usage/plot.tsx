// Stacked bars by day, as SVG: it follows the theme, and forced colours leave it alone. The table has the same numbers.
import { scaleBand, scaleLinear } from 'd3-scale'
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
  const ticks = y.ticks(TICKS).filter(Number.isInteger)
  const every = Math.ceil(days.length / LABELS)
  return (
    <div className="pt-2">
      <div className="flex gap-2">
        <div aria-hidden className="relative h-56 w-20 shrink-0 text-xs text-muted tabular-nums">
          {ticks.map((tick) => (
            <span
              key={tick}
              className="absolute right-0 -translate-y-1/2 whitespace-nowrap"
              style={{ top: `${y(tick)}%` }}
            >
              {short(tick)}
            </span>
          ))}
        </div>
        <svg
          role="img"
          aria-label={label}
          viewBox="0 0 100 100"
          preserveAspectRatio="none"
          className="h-56 min-w-0 grow overflow-visible"
        >
          {ticks.map((tick) => (
            <line key={tick} x1={0} x2={100} y1={y(tick)} y2={y(tick)} {...STROKE} stroke="var(--line)" />
          ))}
          {days.map((day, at) => (
            <Bar key={day} day={day} at={at} series={series} total={totals[at] ?? 0} {...{ x, y, format }} />
          ))}
          {line && <path d={stepped(line, y)} {...STROKE} {...LINE} />}
        </svg>
      </div>
      <div aria-hidden className="relative ml-22 h-6 text-xs text-muted">
        {days.map((day, at) =>
          at % every === 0 && (x(day) ?? 0) < 90 ? (
            <span
              key={day}
              className={
                (at / every) % 2 === 1
                  ? 'absolute top-1 whitespace-nowrap max-sm:hidden'
                  : 'absolute top-1 whitespace-nowrap'
              }
              style={{ left: `${x(day)}%` }}
            >
              {shortDay(day)}
            </span>
          ) : null,
        )}
      </div>
    </div>
  )
}

const STROKE = { vectorEffect: 'non-scaling-stroke', fill: 'none' } as const
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
