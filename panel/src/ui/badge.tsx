// A state as a word with a colour and an icon: never by colour only.
import type { LucideIcon } from 'lucide-react'
import type { ReactNode } from 'react'
import { cx } from './cx'

export type Tone = 'plain' | 'ok' | 'info' | 'warn' | 'danger' | 'accent'

const TONES: Record<Tone, string> = {
  plain: 'bg-line text-muted',
  ok: 'bg-ok-soft text-ok-text',
  info: 'bg-info-soft text-info-text',
  warn: 'bg-warn-soft text-warn-text',
  danger: 'bg-danger-soft text-danger-text',
  accent: 'bg-accent-soft text-accent-text',
}

interface Props {
  tone?: Tone
  icon?: LucideIcon
  /** In progress: the icon pulses. */
  moving?: boolean
  tip?: string
  children: ReactNode
}

export function Badge({ tone = 'plain', icon: Icon, moving, tip, children }: Props) {
  return (
    <span
      data-tip={tip}
      data-outlined
      className={cx(
        'inline-flex h-5.5 max-w-full shrink-0 items-center gap-1 rounded-full px-2 text-xs font-medium',
        TONES[tone],
      )}
    >
      {Icon && (
        <Icon size={12} strokeWidth={2.4} aria-hidden className={cx('shrink-0', moving && 'pulsing')} />
      )}
      <span className="truncate">{children}</span>
    </span>
  )
}
