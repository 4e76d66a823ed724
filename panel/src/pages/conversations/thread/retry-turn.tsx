// Sends the message of a failed turn again.
import { RotateCw } from 'lucide-react'
import { useClient } from 'urql'
import { useOrg } from '../../../app/organization'
import { useRefused } from '../../../permissions/gate'
import { ActionButton } from '../../../ui/actions'
import type { ConversationRecord } from '../record'
import { post } from './outbox'

export function RetryTurn({ conversation, text }: { conversation: ConversationRecord; text: string }) {
  const org = useOrg()
  const client = useClient()
  const refused = useRefused('agent.interact', conversation)
  if (conversation.takenOverBy !== null || conversation.status === 'ARCHIVED') return null
  return (
    <div className="px-3 pt-2 sm:px-6">
      <ActionButton
        size="sm"
        icon={RotateCw}
        tip="Sends your last message again"
        action={{
          id: 'conversation.retry',
          label: 'Retry this turn',
          group: 'Conversation',
          refused,
          run: () => post(client, org.id, conversation.id, text, []),
        }}
      />
    </div>
  )
}
