// The tabs of a page. Each has its own address, so they are links.
import { Link, type LinkProps } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { Count } from './count'
import { cx } from './cx'
import { useScrollRow } from './tabs-row'

interface Tab {
  id: string
  label: ReactNode
  count?: number
  /** The target; by default the same page with `?tab=` and its id. */
  link?: LinkProps
}

export function Tabs({ tabs, current, label }: { tabs: Tab[]; current: string; label: string }) {
  return (
    <nav
      ref={useScrollRow(current)}
      aria-label={label}
      // Otherwise the router gives the tabs of one page the scroll position of another's.
      data-scroll-restoration-id={label}
      className="scroll-row -mx-2.5 -mb-px flex gap-1 overflow-x-auto"
    >
      {tabs.map(({ id, label, count, link }) => (
        <Link
          key={id}
          {...(link ?? ({ to: '.', search: (before: object) => ({ ...before, tab: id }) } as LinkProps))}
          replace
          // Without it, a tab without a search of its own would count as current beside every other.
          activeOptions={{ exact: true }}
          aria-current={id === current ? 'page' : undefined}
          className={cx(
            'flex items-center gap-1.5 whitespace-nowrap border-b-2 px-2.5 py-2 text-base coarse:py-3',
            id === current
              ? 'border-accent-text font-medium text-ink'
              : 'border-transparent text-muted hover:text-ink',
          )}
        >
          {label}
          {count !== undefined && <Count value={count} label="" tone="plain" />}
        </Link>
      ))}
    </nav>
  )
}
