// The frame of a plot: values at its left, with a line for each, and labels below. SVG: it follows the theme, and forced
// colours leave it alone.
import type { ReactNode, SVGProps } from 'react'
import { cx } from './cx'

export interface Mark {
  /** In percent of the plot, from the top or from the left. */
  at: number
  text: string
}

interface Props {
  label: string
  values: Mark[]
  labels: Mark[]
  height?: string
  /** In percent of the plot, which is stretched to its place. */
  children: ReactNode
}

export const STROKE = { vectorEffect: 'non-scaling-stroke', fill: 'none' } as const

export function PlotFrame({ label, values, labels, height = 'h-56', children }: Props) {
  return (
    <div className="pt-2">
      <div className="flex gap-2">
        <div aria-hidden className={cx('relative w-20 shrink-0 text-xs text-muted tabular-nums', height)}>
          {values.map(({ at, text }) => (
            <span
              key={at}
              className="absolute right-0 -translate-y-1/2 whitespace-nowrap"
              style={{ top: `${at}%` }}
            >
              {text}
            </span>
          ))}
        </div>
        <svg
          role="img"
          aria-label={label}
          viewBox="0 0 100 100"
          preserveAspectRatio="none"
          className={cx('min-w-0 grow overflow-visible', height)}
        >
          {values.map(({ at }) => (
            <line key={at} x1={0} x2={100} y1={at} y2={at} {...STROKE} stroke="var(--line)" />
          ))}
          {children}
        </svg>
      </div>
      <div aria-hidden className="relative ml-22 h-6 text-xs text-muted">
        {labels.map(({ at, text }, index) => (
          <span
            key={at}
            className={cx('absolute top-1 whitespace-nowrap', index % 2 === 1 && 'max-sm:hidden')}
            style={{ left: `${at}%` }}
          >
            {text}
          </span>
        ))}
      </div>
    </div>
  )
}

/** The entry of a line in a legend. */
export function LineKey({ look, children }: { look: SVGProps<SVGLineElement>; children: ReactNode }) {
  return (
    <span className="inline-flex items-center gap-1.5 text-sm text-muted">
      <svg viewBox="0 0 20 4" className="h-1 w-5" aria-hidden="true">
        <line x2="20" y1="2" y2="2" {...look} />
      </svg>
      {children}
    </span>
  )
}
