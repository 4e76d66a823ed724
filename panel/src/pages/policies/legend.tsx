// What the signs in the matrix mean.
import { Check, CircleCheck, CircleX, Lock, type LucideIcon, Minus } from 'lucide-react'
import { DAYS } from './use-proposal'

export function Legend() {
  return (
    <ul
      aria-label="Signs"
      className="sticky left-0 flex w-fit max-w-full flex-wrap gap-x-4 gap-y-1 px-4 py-2 text-xs text-muted sm:px-6"
    >
      {SIGNS.map(([Icon, look, meaning]) => (
        <li key={meaning} className="flex items-center gap-1">
          <Icon size={12} aria-hidden className={look} />
          {meaning}
        </li>
      ))}
      <li>
        <span className="tabular-nums">12</span>: calls of the last {DAYS} days with this result
      </li>
    </ul>
  )
}

const SIGNS: [LucideIcon, string, string][] = [
  [Check, 'text-ok-text', 'Allowed'],
  [Minus, 'text-faint', 'Denied'],
  [Lock, 'text-faint', 'Only the operator can change it'],
  [CircleCheck, 'text-ok-text', 'Expected'],
  [CircleX, 'text-danger-text', 'Expected otherwise'],
]
