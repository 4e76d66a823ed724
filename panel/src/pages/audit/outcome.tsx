// The outcome of an audit entry in one word.
import { Ban, CircleCheck, CircleX } from 'lucide-react'
import { Badge } from '../../ui/badge'
import { words } from '../../ui/status'
import type { Entry } from './audit-page'

export function Outcome({ entry: { outcome, code, count } }: { entry: Entry }) {
  const times = count > 1 ? ` ×${count}` : ''
  const tip = code ? words(code) : undefined
  if (outcome === 'ALLOWED') {
    return (
      <Badge tone="ok" icon={CircleCheck}>
        Done{times}
      </Badge>
    )
  }
  return (
    <Badge
      tone={outcome === 'REFUSED' ? 'warn' : 'danger'}
      icon={outcome === 'REFUSED' ? Ban : CircleX}
      tip={tip}
    >
      {outcome === 'REFUSED' ? 'Refused' : 'Failed'}
      {times}
    </Badge>
  )
}
