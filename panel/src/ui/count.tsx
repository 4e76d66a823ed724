// The number of pending items beside a name.
import { cx } from './cx'

const TONES = {
  plain: 'bg-line text-muted',
  accent: 'bg-accent-soft text-accent-text',
  danger: 'bg-danger-soft text-danger-text',
}

interface Props {
  value: number
  label: string
  tone?: keyof typeof TONES
}

/** Renders nothing for zero. */
export function Count({ value, label, tone = 'accent' }: Props) {
  if (value <= 0) return null
  return (
    <span
      className={cx(
        'inline-flex h-5 min-w-5 shrink-0 items-center justify-center whitespace-nowrap rounded-full px-1.5 text-2xs font-semibold tabular-nums',
        TONES[tone],
      )}
    >
      <span aria-hidden>{value > 999 ? '999+' : value}</span>
      <span className="sr-only">{`${value} ${label}`}</span>
    </span>
  )
}
