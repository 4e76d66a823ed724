// Steps through numbered pages. For history; live lists are feeds (api/use-feed).
import { ChevronLeft, ChevronRight } from 'lucide-react'
import { IconButton } from './button'

interface Props {
  page: number
  size: number
  total: number
  onPage: (page: number) => void
}

export function Pager({ page, size, total, onPage }: Props) {
  if (total <= size && page === 1) return null
  const first = (page - 1) * size + 1
  const last = Math.min(total, page * size)
  return (
    <nav
      aria-label="Pages"
      className="flex shrink-0 items-center justify-end gap-2 border-t border-line px-4 py-1.5 sm:px-6"
    >
      <span className="text-sm text-muted tabular-nums">
        {first <= total
          ? `${first.toLocaleString()}–${last.toLocaleString()} of ${total.toLocaleString()}`
          : `${total.toLocaleString()} in all`}
      </span>
      <IconButton
        icon={ChevronLeft}
        label="Previous page"
        size="sm"
        disabled={page <= 1}
        onClick={() => onPage(page - 1)}
      />
      <IconButton
        icon={ChevronRight}
        label="Next page"
        size="sm"
        disabled={last >= total}
        onClick={() => onPage(page + 1)}
      />
    </nav>
  )
}
