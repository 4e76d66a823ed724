// The outcome of an audit entry in one word.
import { Ban, CircleCheck, CircleX } from 'lucide-react'
import { Badge } from '../../ui/badge'
import { Status, words } from '../../ui/status'
import type { Entry } from './audit-page'
import { decisionOf } from './words'

export function Outcome({ entry }: { entry: Entry }) {
  const { outcome, code, count } = entry
  const decision = outcome === 'ALLOWED' ? decisionOf(entry) : null
  const times = count > 1 ? ` ×${count}` : ''
  const tip = code ? words(code) : undefined
  if (decision) return <Status of="approval" value={decision} />
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
