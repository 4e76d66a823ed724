// Buttons. A denied button (see permissions/gate) stays focusable and explains itself instead of acting.
import type { LucideIcon } from 'lucide-react'
import type { ComponentProps, ReactNode } from 'react'
import { useRefusal } from '../permissions/refusal'
import { cx } from './cx'

export type Look = 'primary' | 'secondary' | 'quiet' | 'danger'
export type Size = 'sm' | 'md'

const LOOKS: Record<Look, string> = {
  primary: 'border border-transparent bg-accent text-on-accent hover:bg-accent-hover',
  secondary: 'border border-outline/50 bg-canvas text-ink hover:bg-hover',
  quiet: 'text-muted hover:bg-hover hover:text-ink',
  danger: 'border border-transparent bg-danger text-on-danger hover:bg-danger-hover',
}
const SIZES: Record<Size, string> = {
  sm: 'h-7 px-2 text-sm coarse:h-10 coarse:px-3',
  md: 'h-8 px-3 text-base coarse:h-11 coarse:px-4',
}

export interface ButtonProps extends ComponentProps<'button'> {
  look?: Look
  size?: Size
  icon?: LucideIcon
  /** Pending: the label stays and further clicks are ignored. */
  busy?: boolean
  /** Tooltip, where the label is not clear enough. */
  tip?: string
  /** Keyboard shortcut for the tooltip: `a`, `mod+k`. */
  keys?: string
}

/** Button classes, for links that look like buttons. */
export function buttonClass(look: Look = 'secondary', size: Size = 'md', className?: string): string {
  return cx(
    'inline-flex shrink-0 select-none items-center justify-center gap-1.5 whitespace-nowrap rounded-control font-medium',
    'disabled:pointer-events-none disabled:opacity-55 aria-disabled:opacity-55',
    LOOKS[look],
    SIZES[size],
    className,
  )
}

/** The classes of a filter above a list, `on` while it narrows the list. */
export const pillClass = (on: boolean) =>
  buttonClass(
    'secondary',
    'sm',
    cx('rounded-full', on && 'border-accent-text! bg-selected! text-accent-text!'),
  )

export function Button(props: ButtonProps) {
  const {
    look,
    size,
    icon: Icon,
    busy,
    tip,
    keys,
    className,
    children,
    onClick,
    type,
    disabled,
    ...rest
  } = props
  const refusal = useRefusal()
  const idle = busy || refusal !== null
  return (
    <button
      {...rest}
      type={type ?? 'button'}
      disabled={disabled && refusal === null}
      aria-disabled={idle || rest['aria-disabled']}
      aria-busy={busy || undefined}
      data-tip={refusal ? 'You may not do this. Press to see why.' : tip}
      data-keys={refusal ? undefined : keys}
      onClick={(event) => {
        if (refusal) {
          event.preventDefault()
          event.stopPropagation()
          refusal.explain()
        } else if (busy) event.preventDefault()
        else onClick?.(event)
      }}
      className={buttonClass(look, size, className)}
    >
      {Icon && <Icon size={15} aria-hidden className={cx('shrink-0', busy && 'pulsing')} />}
      {children}
    </button>
  )
}

interface IconButtonProps extends Omit<ButtonProps, 'children' | 'tip' | 'icon'> {
  icon: LucideIcon
  /** The accessible name, also shown as a tooltip. */
  label: string
  badge?: ReactNode
}

export function IconButton({
  icon: Icon,
  label,
  look = 'quiet',
  size,
  badge,
  className,
  ...rest
}: IconButtonProps) {
  // Important, to override the padding of text buttons, which would squeeze the icon.
  const square = size === 'sm' ? 'size-7 px-0! coarse:size-10' : 'size-8 px-0! coarse:size-11'
  return (
    <Button
      {...rest}
      look={look}
      size={size}
      aria-label={label}
      tip={label}
      className={cx('relative', square, className)}
    >
      <Icon size={16} aria-hidden className="shrink-0" />
      {badge}
    </Button>
  )
}
