// The list of a long page's sections, in groups. It marks the sections with unsaved changes.
import { Link, useLocation } from '@tanstack/react-router'
import { createContext, type ReactNode, useCallback, useContext, useEffect, useState } from 'react'
import { cx } from './cx'

export interface SectionGroup {
  title: string
  /** The titles of its sections. */
  sections: readonly string[]
}

type Report = (title: string, isChanged: boolean) => void
const ReportContext = createContext<Report | null>(null)

/** The address of a section on its page: `#cost-guard`. */
export const sectionId = (title: string): string =>
  title
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')

/** Tells the list about a section, and returns the section's id. Without a list there is none. */
export function useListed(title: string, isChanged: boolean): string | undefined {
  const report = useContext(ReportContext)
  useEffect(() => {
    report?.(title, isChanged)
    return () => report?.(title, false)
  }, [report, title, isChanged])
  return report ? sectionId(title) : undefined
}

interface Props {
  label: string
  groups: readonly SectionGroup[]
  children: ReactNode
}

export function SectionList({ label, groups, children }: Props) {
  const [changed, setChanged] = useState<readonly string[]>([])
  const report = useCallback<Report>((title, isChanged) => {
    setChanged((before) =>
      before.includes(title) === isChanged
        ? before
        : isChanged
          ? [...before, title]
          : before.filter((other) => other !== title),
    )
  }, [])
  const hash = useLocation({ select: (location) => location.hash })
  // The sections come after the page, so the router finds none.
  useEffect(() => {
    if (hash) document.getElementById(hash)?.scrollIntoView()
  }, [hash])
  const isMarked = ({ sections }: SectionGroup) => sections.some((title) => changed.includes(title))
  return (
    <div className="lg:grid lg:grid-cols-[10rem_minmax(0,1fr)] lg:gap-x-8">
      <nav
        aria-label={label}
        className="mb-4 -ml-2 flex flex-wrap gap-1 lg:sticky lg:top-6 lg:block lg:self-start"
      >
        {groups.map((group) => (
          <div key={group.title} className="mb-2">
            <Item
              to={group.sections[0] ?? ''}
              isChanged={isMarked(group)}
              isCurrent={false}
              className="font-medium"
            >
              {group.title}
            </Item>
            <ul className="hidden lg:block">
              {group.sections.map((title) => (
                <li key={title}>
                  <Item to={title} isChanged={changed.includes(title)} isCurrent={sectionId(title) === hash}>
                    {title}
                  </Item>
                </li>
              ))}
            </ul>
          </div>
        ))}
      </nav>
      <div className="min-w-0">
        <ReportContext value={report}>{children}</ReportContext>
      </div>
    </div>
  )
}

interface ItemProps {
  to: string
  isChanged: boolean
  isCurrent: boolean
  className?: string
  children: ReactNode
}

function Item({ to, isChanged, isCurrent, className, children }: ItemProps) {
  return (
    <Link
      to="."
      search={true as never}
      hash={sectionId(to)}
      replace
      resetScroll={false}
      // For a second press: the address stays the same.
      onClick={() => document.getElementById(sectionId(to))?.scrollIntoView()}
      aria-current={isCurrent ? 'location' : undefined}
      className={cx(
        'flex items-center gap-2 whitespace-nowrap rounded-control px-2 py-1 text-sm hover:bg-hover coarse:py-2.5',
        isCurrent ? 'font-medium text-ink' : 'text-muted',
        className,
      )}
    >
      {children}
      {isChanged && (
        <>
          <span aria-hidden data-filled className="size-2 rounded-full bg-accent" />
          <span className="sr-only">, not saved</span>
        </>
      )}
    </Link>
  )
}
