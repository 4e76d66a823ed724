// Retries a failed turn.
import { RotateCw } from 'lucide-react'
import { graphql } from '../../../api/graphql'
import { useAct } from '../../../api/use-act'
import { useOrg } from '../../../app/organization'
import { useRefused } from '../../../permissions/gate'
import { ActionButton } from '../../../ui/actions'
import type { ConversationRecord } from '../record'

const Retry = graphql(`
  mutation RetryTurn($orgId: Id!, $id: Id!) { retryTurn(orgId: $orgId, id: $id) { id state } }
`)

export function RetryTurn({ conversation, turn }: { conversation: ConversationRecord; turn: number }) {
  const org = useOrg()
  const retry = useAct(Retry)
  const refused = useRefused('agent.interact', conversation)
  if (conversation.takenOverBy !== null || conversation.status === 'ARCHIVED') return null
  return (
    <div className="px-3 pt-2 sm:px-6">
      <ActionButton
        size="sm"
        icon={RotateCw}
        busy={retry.pending}
        tip="Sends its messages to the agent again"
        action={{
          id: 'conversation.retry',
          label: 'Retry this turn',
          group: 'Conversation',
          refused,
          run: () => void retry({ orgId: org.id, id: turn }),
        }}
      />
    </div>
  )
}
