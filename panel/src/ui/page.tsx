// The frame of every page: a fixed header above scrolling content.
import { type ReactNode, type Ref, useEffect } from 'react'
import { setTitle } from '../app/title'
import { cx } from './cx'
import { DocLink } from './doc-link'

interface HeaderProps {
  title: ReactNode
  /** The browser tab's title, if `title` is not a string. */
  name?: string
  /** For pages that focus their title. */
  titleRef?: Ref<HTMLHeadingElement>
  /** A link to the parent, above the title. */
  above?: ReactNode
  /** A state beside the title. */
  beside?: ReactNode
  about?: ReactNode
  /** The part of the documentation: `approvals.md`. */
  doc?: string
  actions?: ReactNode
  /** Tabs or filters, in the header's last row. */
  children?: ReactNode
}

export function PageHeader(props: HeaderProps) {
  const { title, name, titleRef, above, beside, about, doc, actions, children } = props
  const text = name ?? (typeof title === 'string' ? title : '')
  useEffect(() => setTitle(text), [text])
  return (
    <header className="shrink-0 border-b border-line px-4 pt-3 sm:px-6">
      <div className="flex min-h-10 flex-wrap items-center gap-x-3 gap-y-1 pb-2">
        <div className="min-w-0 grow basis-40">
          {above && <div className="mb-0.5 text-xs text-muted">{above}</div>}
          <div className="flex min-w-0 flex-wrap items-center gap-2.5">
            <h1
              ref={titleRef}
              tabIndex={titleRef ? -1 : undefined}
              className="min-w-0 truncate text-lg font-semibold"
            >
              {title}
            </h1>
            {doc && <DocLink to={doc} about="this page" />}
            {beside}
          </div>
          {about && <p className="text-sm text-muted">{about}</p>}
        </div>
        {actions && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
      </div>
      {children}
    </header>
  )
}

/** The scrolling content. `narrow` suits text and forms; lists fill the width. */
export function PageBody({
  narrow,
  children,
  className,
}: {
  narrow?: boolean
  children: ReactNode
  className?: string
}) {
  return (
    <div className={cx('min-h-0 grow overflow-y-auto', className)}>
      <div className={cx(narrow && 'w-full max-w-3xl px-4 py-6 sm:px-6')}>{children}</div>
    </div>
  )
}
