// Sends a test message through a channel, and shows the vendor's answer.
import { Send } from 'lucide-react'
import { useState } from 'react'
import { useAct } from '../../api/use-act'
import { useOrg } from '../../app/organization'
import { Gate } from '../../permissions/gate'
import { Button } from '../../ui/button'
import { Field } from '../../ui/field'
import { Notice } from '../../ui/notice'
import { Panel } from '../../ui/panel'
import { type Choice, Picker } from '../../ui/picker'
import { Visible } from '../../ui/visible'
import { type Channel, TestChannel } from './channel'
import { useFindConversations } from './conversations-found'

/** Where a test goes without a conversation. Other transports need one. */
const RECIPIENTS: Record<string, string | undefined> = {
  EMAIL: 'Sends a test message to your own address.',
  WEBHOOK: 'Sends a test message to the address for outgoing messages.',
}
const CHOSEN =
  'Sends a test message to a conversation that you choose. The people in it see it; the agent doesn’t.'

export function TestMessage({ channel }: { channel: Channel }) {
  const { transport, direction } = channel
  // Calendars carry events, not messages.
  if (direction === 'INBOUND' || transport === 'CALENDAR') return null
  return (
    <Panel
      title="Test message"
      doc="channels/README.md#test-a-channel"
      about={RECIPIENTS[transport] ?? CHOSEN}
    >
      <Test key={channel.id} channel={channel} />
    </Panel>
  )
}

function Test({ channel: { id, transport, isActive, viewerCan } }: { channel: Channel }) {
  const { id: orgId, can } = useOrg()
  const test = useAct(TestChannel)
  const search = useFindConversations(id)
  const [chosen, choose] = useState<Choice | null>(null)
  const [answer, setAnswer] = useState<{ error: string | null } | null>(null)
  const isChosen = !RECIPIENTS[transport]
  const send = async () => {
    setAnswer(null)
    const { data } = await test({ orgId, id, conversationId: chosen && Number(chosen.id) })
    setAnswer(data?.testChannel ?? null)
  }
  return (
    <Gate on={{ viewerCan }} may="agent.edit">
      <div className="flex flex-wrap items-end gap-2">
        {isChosen && (
          <Gate may="agent.interact">
            <Field label="Conversation" className="w-72">
              <Picker
                value={chosen}
                search={search}
                placeholder="Choose a conversation…"
                empty="This channel has no such conversation."
                disabled={!viewerCan.includes('agent.edit') || !can('agent.interact')}
                onValue={choose}
              />
            </Field>
          </Gate>
        )}
        <Button
          icon={Send}
          busy={test.pending}
          disabled={!isActive || (isChosen && !chosen)}
          onClick={() => void send()}
        >
          Send a test message
        </Button>
      </div>
      {!isActive && <p className="mt-2 text-sm text-muted">Switch the channel on first.</p>}
      {answer && <Result error={answer.error} />}
    </Gate>
  )
}

function Result({ error }: { error: string | null }) {
  return error === null ? (
    <p className="mt-2 text-sm" role="status">
      Sent: the other side accepted the message.
    </p>
  ) : (
    <div className="mt-2">
      <Notice>
        <Visible text={error} />
      </Notice>
    </div>
  )
}
