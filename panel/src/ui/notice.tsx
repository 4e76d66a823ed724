// A message in a coloured box.
import type { ReactNode } from 'react'

/** An error above or below a form. */
export function Notice({
  tone = 'danger',
  children,
}: {
  tone?: 'danger' | 'warn' | 'info' | 'ok'
  children: ReactNode
}) {
  const tones = {
    danger: 'bg-danger-soft text-danger-text',
    warn: 'bg-warn-soft text-warn-text',
    info: 'bg-info-soft text-info-text',
    ok: 'bg-ok-soft text-ok-text',
  }
  return (
    <div
      role={tone === 'danger' ? 'alert' : 'status'}
      className={`rounded-control px-3 py-2 text-sm ${tones[tone]}`}
      data-outlined
    >
      {children}
    </div>
  )
}
