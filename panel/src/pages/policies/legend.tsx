// What the signs in the matrix mean.
import { Check, CircleCheck, CircleX, Lock, type LucideIcon, Minus } from 'lucide-react'
import { Panel } from '../../ui/panel'
import { DAYS } from './use-proposal'

export function Legend() {
  return (
    <Panel title="Signs">
      <ul className="space-y-1 text-sm text-muted">
        {SIGNS.map(([Icon, look, meaning]) => (
          <li key={meaning} className="flex items-center gap-1.5">
            <Icon size={14} aria-hidden className={look} />
            {meaning}
          </li>
        ))}
        <li className="flex gap-1.5">
          <span className="tabular-nums">12</span> Calls of the last {DAYS} days with this result
        </li>
      </ul>
    </Panel>
  )
}

const SIGNS: [LucideIcon, string, string][] = [
  [Check, 'text-ok-text', 'Allowed'],
  [Minus, 'text-faint', 'Denied'],
  [Lock, 'text-faint', 'Only the operator can change it'],
  [CircleCheck, 'text-ok-text', 'Expected'],
  [CircleX, 'text-danger-text', 'Expected otherwise'],
]
