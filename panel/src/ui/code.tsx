// Machine-readable text: commands, logs, documents. Reveals hidden characters.
import { Copy } from './copy'
import { cx } from './cx'
import { Visible } from './visible'

interface Props {
  text: string
  label?: string
  wrap?: boolean
  /** Taller text scrolls. */
  maxHeight?: 'sm' | 'md' | 'lg' | 'none'
  className?: string
}

const HEIGHTS = { sm: 'max-h-40', md: 'max-h-80', lg: 'max-h-[70vh]', none: '' }

export function CodeBlock({ text, label, wrap = true, maxHeight = 'md', className }: Props) {
  return (
    <div className={cx('group relative rounded-control border border-line bg-sunken', className)}>
      <pre
        role="group"
        tabIndex={0}
        aria-label={label ?? 'Code'}
        className={cx(
          'overflow-auto py-2.5 pr-11 pl-3 font-mono text-sm',
          wrap ? 'whitespace-pre-wrap' : 'whitespace-pre',
          HEIGHTS[maxHeight],
        )}
      >
        <code>
          <Visible text={text} />
        </code>
      </pre>
      <span className="absolute top-1 right-1">
        <Copy text={text} label={label ? `Copy ${label}` : 'Copy'} />
      </span>
    </div>
  )
}

/** An inline name or value. */
export function Code({ children }: { children: string }) {
  return (
    <code className="rounded bg-sunken px-1 py-px font-mono text-[0.92em]">
      <Visible text={children} />
    </code>
  )
}
