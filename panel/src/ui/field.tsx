// A control with its label, hint and error, linked for screen readers.
import { cloneElement, type ReactElement, type ReactNode, useId } from 'react'
import { cx } from './cx'
import { type DocPart, FieldDocLink } from './doc-link'
import { useOpenError } from './field-error'

interface ControlProps {
  value?: unknown
  id?: string
  'aria-describedby'?: string
  'aria-invalid'?: boolean
}

interface Props {
  label: ReactNode
  /** What the value is for, or what is allowed. */
  hint?: ReactNode
  error?: string | null
  /** An error of the present value, shown while typing. */
  liveError?: string | null
  optional?: boolean
  /** The part of the documentation, where the hint can't explain enough. */
  doc?: DocPart
  /** A link or small button at the right of the label. */
  aside?: ReactNode
  /** Hides the label visually; screen readers still read it. */
  hideLabel?: boolean
  className?: string
  /** One control. It receives its id and its descriptions. */
  children: ReactElement<ControlProps>
}

export function Field(props: Props) {
  const { label, hint, optional, doc, aside, hideLabel, className, children } = props
  const error = useOpenError(props.error, children.props.value) ?? props.liveError
  const made = useId()
  const id = children.props.id ?? made
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ')
  return (
    <div className={cx('min-w-0 space-y-1', className)}>
      <div className={cx('flex items-baseline justify-between gap-2', hideLabel && 'sr-only')}>
        <span className="flex min-w-0 items-center gap-1.5">
          <label htmlFor={id} className="text-sm font-medium">
            {label}
            {/* The space separates the words for screen readers. */}
            {optional && <span className="ml-0.5 font-normal text-faint"> optional</span>}
          </label>
          {doc && <FieldDocLink to={doc} />}
        </span>
        {aside}
      </div>
      {cloneElement(children, {
        id,
        'aria-describedby': described || undefined,
        'aria-invalid': error ? true : undefined,
      })}
      {hint && (
        <p id={`${id}-hint`} className="text-xs text-muted">
          {hint}
        </p>
      )}
      {error && (
        <p id={`${id}-error`} role="alert" className="text-xs font-medium text-danger-text">
          {error}
        </p>
      )}
    </div>
  )
}
