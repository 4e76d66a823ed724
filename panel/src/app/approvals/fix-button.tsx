// Removes the cause of an approval instead of only answering it: raises the limit, or allows the host for all agents.
import { Gate } from '../../permissions/gate'
import { Button } from '../../ui/button'
import { useOrg } from '../organization'
import { AllowHostDialog } from '../spending/allow-host'
import { AllowMore } from '../spending/allow-more'
import { moneyOf } from '../spending/money'
import type { ApprovalRecord } from './fields'
import type { Fix } from './fix'

interface ButtonProps {
  fix: Fix
  keys?: string
  onPress: () => void
}

export function FixButton({ fix, keys, onPress }: ButtonProps) {
  const { currency } = useOrg()
  if (fix.what === 'host') {
    return (
      <Gate may="network.edit">
        <Button tip="Puts it on the list for all agents, and approves this" onClick={onPress}>
          Allow this host…
        </Button>
      </Gate>
    )
  }
  const { kind, proposed } = fix
  const amount = kind === 'money' ? moneyOf(proposed, currency) : `${proposed.toLocaleString()} tokens`
  return (
    <Gate may="organization.edit">
      <Button look="primary" keys={keys} onClick={onPress}>
        Allow {amount} more…
      </Button>
    </Gate>
  )
}

interface DialogProps {
  approval: ApprovalRecord
  fix: Fix
  onClose: () => void
  onDone?: () => void
}

export function FixDialog({ approval, fix, onClose, onDone }: DialogProps) {
  const shared = { approvalId: approval.id, onClose, onDone }
  if (fix.what === 'host') return <AllowHostDialog {...shared} host={fix.host} port={fix.port} />
  const { kind, proposed, agentId } = fix
  const agent = agentId === null ? undefined : { id: agentId, name: approval.agent?.name ?? 'this agent' }
  return <AllowMore {...shared} kind={kind} proposed={proposed} agent={agent} />
}
