// A server's usage of one resource: a bar and a number. Marks old numbers of a disconnected server as such.
import { cx } from '../../ui/cx'

interface Props {
  label: string
  of: { name: string; status: string }
  pct: number | null
  wide?: boolean
}

export function Load({ label, of: { name, status }, pct, wide }: Props) {
  const live = status === 'ONLINE' || status === 'DEGRADED'
  if (pct === null || !live) {
    return (
      <span className="text-faint" data-tip={live ? 'Not measured yet' : 'The host is not connected'}>
        –<span className="sr-only">{live ? ' not measured yet' : ' not connected'}</span>
      </span>
    )
  }
  const shown = Math.round(pct)
  return (
    <span data-ticking className={cx('flex items-center gap-2', wide ? 'w-full max-w-72' : 'w-full')}>
      <meter
        aria-label={`${label} of ${name}`}
        className="h-2 min-w-0 grow"
        min={0}
        max={100}
        high={85}
        value={Math.min(100, pct)}
      />
      <span className="w-12 shrink-0 whitespace-nowrap text-right text-sm tabular-nums">{shown} %</span>
    </span>
  )
}
