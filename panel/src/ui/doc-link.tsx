// A link to the part of the documentation that explains a page, a section or a field. A test checks that the parts
// exist.
import { cx } from './cx'

/** A part of a page in docs/: `approvals.md#risk-rules`. */
export type DocPart = `${string}.md#${string}`

interface Props {
  /** The page in docs/, with or without a part. */
  to: string
  /** The subject, for screen readers: "Approvals". */
  about: string
}

export function DocLink(props: Props) {
  // A finger gets the space around the ring.
  return <Mark {...props} className="coarse:-m-2.5 coarse:size-11" />
}

/** Beside the label of a field, in whose line it fits. Its subject is the heading that it leads to. */
export function FieldDocLink({ to }: { to: DocPart }) {
  return <Mark to={to} about={to.replace(/.*#/, '').replaceAll('-', ' ')} className="-my-0.5" />
}

function Mark({ to, about, className }: Props & { className: string }) {
  return (
    <a
      href={`/docs/${to}`}
      target="_blank"
      rel="noopener"
      aria-label={`Documentation: ${about}`}
      data-tip="Documentation"
      className={cx(
        'group flex size-6 shrink-0 items-center justify-center rounded-full text-xs text-muted hover:text-ink',
        className,
      )}
    >
      <span className="flex size-6 items-center justify-center rounded-full border border-line group-hover:border-outline">
        ?
      </span>
    </a>
  )
}
