// Switches, checkboxes and radio buttons: native controls with our styles.
import { type ReactNode, useId } from 'react'
import { useRefusal } from '../permissions/refusal'
import { cx } from './cx'
import { type DocPart, FieldDocLink } from './doc-link'

const MARK =
  'peer h-4.5 shrink-0 appearance-none border border-outline bg-canvas checked:border-accent disabled:opacity-55 aria-disabled:opacity-55'
/** The classes of a radio button, and of a checkbox with its `Tick`. */
export const RADIO = `${MARK} w-4.5 rounded-full checked:border-[5px]`
export const CHECKBOX = `${MARK} w-4.5 rounded transition-colors checked:bg-accent`
const SWITCH = `${MARK} w-8 rounded-full transition-colors checked:bg-accent`

export function Tick() {
  return (
    <span
      aria-hidden
      className="pointer-events-none absolute inset-0 hidden items-center justify-center text-xs font-bold text-on-accent peer-checked:flex"
    >
      ✓
    </span>
  )
}

interface ToggleProps {
  checked: boolean
  onChecked: (checked: boolean) => void
  label: ReactNode
  hint?: ReactNode
  error?: string | null
  disabled?: boolean
  hideLabel?: boolean
}

/** A toggle that applies immediately or with its section. */
export function Switch(props: ToggleProps) {
  return <Toggle {...props} role="switch" />
}

/** A checkbox that is submitted with others. */
export function Checkbox(props: ToggleProps) {
  return <Toggle {...props} />
}

function Toggle({
  checked,
  onChecked,
  label,
  hint,
  error,
  disabled,
  hideLabel,
  role,
}: ToggleProps & { role?: 'switch' }) {
  const id = useId()
  const refusal = useRefusal()
  const isSwitch = role === 'switch'
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ')
  return (
    <div className="flex items-start gap-2.5">
      <span className="relative mt-0.5 inline-flex shrink-0">
        <input
          id={id}
          type="checkbox"
          role={role}
          checked={checked}
          disabled={disabled && !refusal}
          aria-disabled={refusal ? true : undefined}
          aria-describedby={described || undefined}
          aria-invalid={error ? true : undefined}
          onChange={(event) => (refusal ? refusal.explain() : onChecked(event.target.checked))}
          className={isSwitch ? SWITCH : CHECKBOX}
        />
        {isSwitch ? (
          <span
            aria-hidden
            data-filled
            className="pointer-events-none absolute left-[3px] top-[3px] size-3 rounded-full bg-outline transition-transform peer-checked:translate-x-3.5 peer-checked:bg-on-accent"
          />
        ) : (
          <Tick />
        )}
      </span>
      <div className={cx('min-w-0', hideLabel && 'sr-only')}>
        <label htmlFor={id}>{label}</label>
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
    </div>
  )
}

interface RadioProps<Value extends string> {
  label: ReactNode
  value: Value | null
  onValue: (value: Value) => void
  options: readonly { value: Value; label: ReactNode; hint?: ReactNode; disabled?: boolean }[]
  hideLabel?: boolean
  /** Lays the options out side by side. */
  row?: boolean
  /** The part of the documentation. */
  doc?: DocPart
  error?: string | null
}

export function RadioGroup<Value extends string>({
  label,
  value,
  onValue,
  options,
  hideLabel,
  row,
  doc,
  error,
}: RadioProps<Value>) {
  const name = useId()
  return (
    <fieldset className="min-w-0" aria-labelledby={name} aria-invalid={error ? true : undefined}>
      <legend className={cx('mb-1.5 flex items-center gap-1.5 text-sm font-medium', hideLabel && 'sr-only')}>
        <span id={name}>{label}</span>
        {doc && <FieldDocLink to={doc} />}
      </legend>
      <div className={cx('flex gap-x-5 gap-y-2', row ? 'flex-wrap' : 'flex-col')}>
        {options.map((option) => (
          <label key={option.value} className="flex items-start gap-2.5">
            <input
              type="radio"
              name={name}
              checked={option.value === value}
              disabled={option.disabled}
              onChange={() => onValue(option.value)}
              className={`${RADIO} mt-0.5`}
            />
            <span className="min-w-0">
              {option.label}
              {option.hint && <span className="block text-xs text-muted">{option.hint}</span>}
            </span>
          </label>
        ))}
      </div>
      {error && <p className="mt-1 text-xs font-medium text-danger-text">{error}</p>}
    </fieldset>
  )
}
