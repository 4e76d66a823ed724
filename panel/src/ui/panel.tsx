// The parts of a page: sections with a heading, facts, and the note on read-only content.
import type { ReactNode } from 'react'
import { DocLink } from './doc-link'

/** A page section with a heading. Forms use ui/section-form, which looks the same. */
export function Panel({
  title,
  about,
  doc,
  actions,
  children,
}: {
  title: string
  about?: ReactNode
  /** The part of the documentation. */
  doc?: string
  actions?: ReactNode
  children: ReactNode
}) {
  return (
    <section className="mb-8">
      <div className="mb-3 flex flex-wrap items-end justify-between gap-2">
        <div className="min-w-0">
          <div className="flex items-center gap-2">
            <h2 className="font-semibold">{title}</h2>
            {doc && <DocLink to={doc} about={title} />}
          </div>
          {about && <p className="text-sm text-muted">{about}</p>}
        </div>
        {actions}
      </div>
      {children}
    </section>
  )
}

/** Names and values, in two columns where there is room. */
export function Facts({ children }: { children: ReactNode }) {
  return <dl className="grid grid-cols-[minmax(7rem,auto)_1fr] gap-x-6 gap-y-2">{children}</dl>
}

export function Fact({ name, children }: { name: ReactNode; children: ReactNode }) {
  return (
    <>
      <dt className="text-muted">{name}</dt>
      <dd className="min-w-0">{children}</dd>
    </>
  )
}

/** Says that the viewer may not change the content, and explains why on request. */
export function NotEditable({ explain }: { explain: () => void }) {
  return (
    <p className="text-sm text-muted">
      You may see this, but not change it.{' '}
      <button type="button" className="link" onClick={explain}>
        Why?
      </button>
    </p>
  )
}
