// Text inputs. All take `value` and `onValue`; a Field adds label, hint and error.
import type { ComponentProps } from 'react'
import { useLayoutEffect, useRef, useState } from 'react'
import { cx } from './cx'
import { format, parse } from './number'

interface TextProps extends Omit<ComponentProps<'input'>, 'value' | 'onChange'> {
  value: string
  onValue: (value: string) => void
}

export function TextInput({ value, onValue, className, type = 'text', ...rest }: TextProps) {
  return (
    <input
      {...rest}
      type={type}
      value={value}
      onChange={(event) => onValue(event.target.value)}
      className={cx('control', className)}
    />
  )
}

interface AreaProps extends Omit<ComponentProps<'textarea'>, 'value' | 'onChange'> {
  value: string
  onValue: (value: string) => void
  /** Grows with its text up to this many lines. */
  maxRows?: number
}

export function TextArea({ value, onValue, rows = 3, maxRows = 14, className, ref: _, ...rest }: AreaProps) {
  const area = useRef<HTMLTextAreaElement>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new text may need a different height
  useLayoutEffect(() => {
    const element = area.current
    if (!element) return
    element.style.height = 'auto'
    const line = Number.parseFloat(getComputedStyle(element).lineHeight) || 20
    element.style.height = `${Math.min(element.scrollHeight + 2, line * maxRows)}px`
  }, [value, maxRows])
  return (
    <textarea
      {...rest}
      ref={area}
      rows={rows}
      value={value}
      onChange={(event) => onValue(event.target.value)}
      className={cx('control block resize-none', className)}
    />
  )
}

interface NumberProps extends Omit<ComponentProps<'input'>, 'value' | 'onChange' | 'type'> {
  value: number | null
  /** Null: empty. NaN: not a number; `refusal` reports it. */
  onValue: (value: number | null) => void
  /** The unit: "minutes". */
  unit?: string
}

/** A text input for numbers, so that half-typed numbers survive and the mouse wheel changes nothing. */
export function NumberInput({ value, onValue, unit, className, ...rest }: NumberProps) {
  const [text, setText] = useState(value === null ? '' : format(value))
  const read = parse(text)
  // After someone else's change, or "Discard", show the new value.
  const shown =
    Object.is(read, value) || (read === null && value === null) ? text : value === null ? '' : format(value)
  return (
    <span className="relative block">
      <input
        {...rest}
        inputMode="decimal"
        autoComplete="off"
        value={shown}
        onChange={(event) => {
          setText(event.target.value)
          onValue(parse(event.target.value))
        }}
        className={cx('control tabular-nums', unit && 'pr-20', className)}
      />
      {unit && (
        <span className="pointer-events-none absolute inset-y-0 right-3 flex items-center text-sm text-faint">
          {unit}
        </span>
      )}
    </span>
  )
}

interface SelectProps<Value extends string> extends Omit<ComponentProps<'select'>, 'value' | 'onChange'> {
  value: Value | null
  onValue: (value: Value) => void
  options: readonly { value: Value; label: string; disabled?: boolean }[]
  /** Shown while nothing is selected. */
  placeholder?: string
}

/** A native select, which all phones and screen readers support. For more than ten options use a Picker. */
export function Select<Value extends string>({
  value,
  onValue,
  options,
  placeholder,
  className,
  ...rest
}: SelectProps<Value>) {
  return (
    <select
      {...rest}
      value={value ?? ''}
      onChange={(event) => onValue(event.target.value as Value)}
      className={cx('control', className)}
    >
      {value === null && (
        <option value="" disabled>
          {placeholder ?? 'Choose…'}
        </option>
      )}
      {options.map(({ value: option, label, disabled }) => (
        <option key={option} value={option} disabled={disabled}>
          {label}
        </option>
      ))}
    </select>
  )
}
