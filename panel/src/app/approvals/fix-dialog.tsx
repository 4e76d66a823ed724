// Removes the cause of an approval: raises the limit, or allows the host for all agents.
import { AllowHostDialog } from '../spending/allow-host'
import { AllowMore } from '../spending/allow-more'
import type { ApprovalRecord } from './fields'
import type { Fix } from './fix'

interface Props {
  approval: ApprovalRecord
  fix: Fix
  onClose: () => void
  onDone?: () => void
}

export default function FixDialog({ approval, fix, onClose, onDone }: Props) {
  const shared = { approvalId: approval.id, onClose, onDone }
  if (fix.what === 'host') return <AllowHostDialog {...shared} host={fix.host} port={fix.port} />
  const { kind, proposed, agentId } = fix
  const agent = agentId === null ? undefined : { id: agentId, name: approval.agent?.name ?? 'this agent' }
  return <AllowMore {...shared} kind={kind} proposed={proposed} agent={agent} />
}
