// Shows who answers, the agent or a person, and switches between them.
import { Hand, Undo2 } from 'lucide-react'
import { useEffect, useState } from 'react'
import { graphql } from '../../../api/graphql'
import { useAct } from '../../../api/use-act'
import { useOrg } from '../../../app/organization'
import { useViewer } from '../../../app/viewer'
import { useActions } from '../../../keys/use-actions'
import { Gate, useRefused } from '../../../permissions/gate'
import { Button } from '../../../ui/button'
import { ConfirmDialog } from '../../../ui/confirm'
import { Time } from '../../../ui/time'
import { Visible } from '../../../ui/visible'
import { ConversationFields, type ConversationRecord } from '../record'

const TakeOverConversation = graphql(
  `
    mutation TakeOver($orgId: Id!, $id: Id!) {
      takeOverConversation(orgId: $orgId, id: $id) { ...ConversationFields }
    }
  `,
  [ConversationFields],
)
const HandBack = graphql(
  `
    mutation HandBack($orgId: Id!, $id: Id!) {
      handBackConversation(orgId: $orgId, id: $id) { ...ConversationFields }
    }
  `,
  [ConversationFields],
)

function useTakeOver({ id }: { id: number }) {
  const org = useOrg()
  const taking = useAct(TakeOverConversation)
  const handing = useAct(HandBack)
  const variables = { orgId: org.id, id }
  return {
    pending: taking.pending || handing.pending,
    takeOver: () => taking(variables, { said: 'You answer now. The agent waits.' }),
    handBack: () => void handing(variables, { said: 'The agent answers again.' }),
  }
}

/** Whether taking over cancels a turn. A queued one is sent after handing back. */
const wouldCancel = ({ takenOverBy, openTurns }: ConversationRecord) =>
  takenOverBy === null && openTurns.some(({ state }) => state !== 'QUEUED')

export function TakeOver({ conversation }: { conversation: ConversationRecord }) {
  const { takenOverBy, agent } = conversation
  const { pending, takeOver, handBack } = useTakeOver(conversation)
  const refused = useRefused('agent.interact', conversation)
  const [asking, ask] = useState(false)
  const isMine = takenOverBy === useViewer().user.id
  // Handing back undoes it, except for a cancelled turn: ask only about that.
  const take = () => (wouldCancel(conversation) ? ask(true) : void takeOver())
  useEffect(() => {
    if (takenOverBy !== null) ask(false)
  }, [takenOverBy])
  useActions([
    isMine
      ? {
          id: 'conversation.hand-back',
          label: 'Hand back to the agent',
          group: 'Conversation',
          keys: 't',
          refused,
          run: handBack,
        }
      : {
          id: 'conversation.take-over',
          label: 'Take over from the agent',
          group: 'Conversation',
          keys: 't',
          refused,
          run: take,
        },
  ])
  if (takenOverBy !== null)
    return <Banner conversation={conversation} pending={pending} onTake={take} onHandBack={handBack} />
  return (
    <ConfirmDialog
      open={asking}
      onClose={() => ask(false)}
      title="Take over now?"
      action="Take over"
      busy={pending}
      onConfirm={takeOver}
    >
      <Visible text={agent?.name ?? 'The agent'} /> is in the middle of a turn. Taking over cancels the turn,
      and handing back does not resume it.
    </ConfirmDialog>
  )
}

interface BannerProps {
  conversation: ConversationRecord
  pending: boolean
  onTake: () => void
  onHandBack: () => void
}

function Banner({ conversation, pending, onTake, onHandBack }: BannerProps) {
  const { user } = useViewer()
  const { takenOverBy, takenOverByName, takenOverAt, agent } = conversation
  const isMine = takenOverBy === user.id
  return (
    <div
      role="status"
      className="flex shrink-0 flex-wrap items-center gap-x-3 gap-y-1.5 border-b border-line bg-warn-soft px-4 py-2 text-warn-text sm:px-6"
    >
      <Hand size={15} aria-hidden className="shrink-0" />
      <p className="min-w-0 grow">
        <strong className="font-semibold">
          {isMine ? 'You answer' : `${takenOverByName ?? 'Someone'} answers`}
        </strong>{' '}
        instead of {agent?.name ?? 'the agent'}. Taken over <Time at={takenOverAt} />; the agent answers again
        after 60 minutes without a message.
      </p>
      <Gate on={conversation} may="agent.interact">
        {isMine ? (
          <Button size="sm" icon={Undo2} busy={pending} onClick={onHandBack} keys="t">
            Hand back
          </Button>
        ) : (
          <Button size="sm" icon={Hand} busy={pending} onClick={onTake} keys="t">
            Take over
          </Button>
        )}
      </Gate>
    </div>
  )
}

/** The recipient of new messages. */
export function addressee(conversation: ConversationRecord, userId: number): string {
  const { takenOverBy, agent, contactName, channelName } = conversation
  const agentName = agent?.name ?? 'the agent'
  if (takenOverBy === userId) {
    return contactName
      ? `To ${contactName}${channelName ? ` by ${channelName}` : ''}. You answer; ${agentName} waits.`
      : `You answer; ${agentName} waits.`
  }
  return contactName && channelName
    ? `To the agent ${agentName}. What it answers goes to ${contactName} by ${channelName}.`
    : `To the agent ${agentName}`
}
