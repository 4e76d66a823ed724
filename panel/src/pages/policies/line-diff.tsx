// biome-ignore-all lint/suspicious/noArrayIndexKey: lines have no identity but their position
// The lines that differ between two texts.
import { cx } from '../../ui/cx'
import { Visible } from '../../ui/visible'
import { changedLines } from './changed-lines'

interface Props {
  before: string
  after: string
  label: string
}

export function LineDiff({ before, after, label }: Props) {
  const lines = changedLines(before, after)
  if (lines.length === 0) return <p className="text-sm text-muted">The texts are the same.</p>
  return (
    <pre
      role="group"
      tabIndex={0}
      aria-label={label}
      className="max-h-80 overflow-auto rounded-control border border-line py-1 font-mono text-sm whitespace-pre-wrap"
    >
      {lines.map(({ sign, text }, index) => (
        <div
          key={index}
          className={cx('px-3', sign === '+' ? 'bg-ok-soft text-ok-text' : 'bg-danger-soft text-danger-text')}
        >
          {sign} <Visible text={text} />
        </div>
      ))}
    </pre>
  )
}
