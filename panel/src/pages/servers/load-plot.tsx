// A measure of a server over time: its average, and thinner its highest value. The table has the same numbers.
import { scaleLinear } from 'd3-scale'
import { PlotFrame, STROKE } from '../../ui/plot-frame'
import { colourAt } from '../usage/palette'
import { pathOf, type Step } from './load-series'

export interface Measured {
  average: Step[]
  maximum: Step[]
}

interface Props extends Measured {
  label: string
  /** The first and the last time. */
  range: [number, number]
  /** The top of the plot. Null: the highest value. */
  top: number | null
  format: (value: number) => string
  /** The time in words. */
  when: (time: number) => string
  /** The same, short. */
  tick: (time: number) => string
}

const VALUES = 3
const LABELS = 7
export const AVERAGE = { stroke: colourAt(0), strokeWidth: 2 } as const
export const MAXIMUM = { stroke: 'var(--muted)', strokeWidth: 1 } as const

export function LoadPlot({ label, range, top, average, maximum, format, when, tick }: Props) {
  const [first, last] = range
  const x = scaleLinear().domain(range).range([0, 100]).clamp(true)
  const most = top ?? Math.max(...maximum.map(({ value }) => value ?? 0), 0)
  const y = scaleLinear()
    .domain([0, most || 1])
    .nice(VALUES)
    .range([100, 0])
  const values = y.ticks(VALUES).map((value) => ({ at: y(value), text: format(value) }))
  const labels = Array.from({ length: LABELS }, (_, index) => ({
    at: (100 * index) / LABELS,
    text: tick(first + ((last - first) * index) / LABELS),
  }))
  return (
    <PlotFrame {...{ label, values, labels }} height="h-32">
      <path d={pathOf(maximum, x, y)} {...STROKE} {...MAXIMUM} />
      <path d={pathOf(average, x, y)} {...STROKE} {...AVERAGE} />
      {average.map(({ from, to, value }, at) => {
        const highest = maximum[at]?.value ?? null
        if (value === null || highest === null) return null
        return (
          <rect
            key={from}
            data-tip={`${when(from)}: ${format(value)} on average, ${format(highest)} at most`}
            x={x(from)}
            width={Math.max(0, x(to) - x(from))}
            y={0}
            height={100}
            fill="transparent"
          />
        )
      })}
    </PlotFrame>
  )
}
