// A placeholder for the very first load. Later reloads keep the content.
import { cx } from './cx'

export function Skeleton({ className }: { className?: string }) {
  return <span aria-hidden className={cx('pulsing block h-4 rounded bg-hover', className)} />
}

const WIDTHS = ['w-2/5', 'w-3/5', 'w-1/2', 'w-2/3', 'w-1/3', 'w-3/5']

export function ListSkeleton({ rows = 6 }: { rows?: number }) {
  return (
    <div role="status" className="space-y-px">
      <span className="sr-only">Loading…</span>
      {Array.from({ length: rows }, (_, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the rows are identical
        <div key={index} className="flex h-row items-center gap-4 border-b border-line px-4">
          <Skeleton className="size-5 rounded-full" />
          <Skeleton className={WIDTHS[index % WIDTHS.length]} />
        </div>
      ))}
    </div>
  )
}
