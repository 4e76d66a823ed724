// A link to the part of the documentation that explains a page or a section. A test checks that the parts exist.

interface Props {
  /** The page in docs/, with a part: `approvals.md#risk-rules`. */
  to: string
  /** The subject, for screen readers: "Approvals". */
  about: string
}

export function DocLink({ to, about }: Props) {
  return (
    <a
      href={`/docs/${to}`}
      target="_blank"
      rel="noopener"
      aria-label={`Documentation: ${about}`}
      data-tip="Documentation"
      className="flex size-6 shrink-0 items-center justify-center rounded-full border border-line text-xs text-muted hover:border-outline hover:text-ink coarse:size-11"
    >
      ?
    </a>
  )
}
