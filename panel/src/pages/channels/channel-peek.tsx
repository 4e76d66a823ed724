// A channel beside the list: its state, its connection, its allowed senders, its alert recipients.
import { Trash2 } from 'lucide-react'
import { useState } from 'react'
import { useAct } from '../../api/use-act'
import { useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import { Gate, useRefused } from '../../permissions/gate'
import { ActionButton } from '../../ui/actions'
import { ConfirmDialog } from '../../ui/confirm'
import { Panel } from '../../ui/page'
import { Peek } from '../../ui/peek'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { AlertRecipients } from './alert-recipients'
import { type Channel, ChannelQuery, DeleteChannel } from './channel'
import { Head } from './head'
import { LinkedChat } from './linked-chat'
import { Refused } from './refused'
import { General, Incoming, TransportSection } from './sections'
import { Skipped } from './skipped'
import { groupsOf } from './transports'
import { Whitelist } from './whitelist'

export function ChannelPeek({ id, onClose }: { id: number; onClose: () => void }) {
  const { id: orgId } = useOrg()
  const { data, error, loading, refetch } = useLive({
    query: ChannelQuery,
    variables: { orgId, id },
    on: ({ kind, id: changed }) => kind === 'CHANNEL' && changed === id,
  })
  const channel = data?.channel
  return (
    <Peek title={channel?.name ?? 'Channel'} onClose={onClose}>
      {error && !channel ? (
        <ProblemView error={error} retry={refetch} />
      ) : loading || !channel ? (
        <ListSkeleton />
      ) : (
        <div className="p-4">
          <Head channel={channel} />
          <Refused channel={channel} />
          <Skipped channel={channel} />
          <Whitelist channel={channel} />
          <Gate on={channel} may="agent.edit">
            <General channel={channel} />
          </Gate>
          {groupsOf(channel.transport).map((group) => (
            <Gate key={group.title} on={channel} may="agent.edit">
              <TransportSection channel={channel} group={group} />
            </Gate>
          ))}
          <Gate on={channel} may="agent.edit">
            <Incoming channel={channel} />
          </Gate>
          <LinkedChat channel={channel} />
          <AlertRecipients channel={channel} />
          <Delete channel={channel} onDeleted={onClose} />
        </div>
      )}
    </Peek>
  )
}

function Delete({ channel, onDeleted }: { channel: Channel; onDeleted: () => void }) {
  const { id: orgId } = useOrg()
  const remove = useAct(DeleteChannel)
  const [asking, ask] = useState(false)
  return (
    <Panel title="Delete" about="Its secrets and its list of senders go with it. Its conversations stay.">
      <ActionButton
        look="danger"
        icon={Trash2}
        action={{
          id: 'channel.delete',
          label: 'Delete the channel',
          group: 'Channel',
          refused: useRefused('agent.edit', channel),
          run: () => ask(true),
        }}
      />
      <ConfirmDialog
        open={asking}
        onClose={() => ask(false)}
        title={`Delete ${channel.name}?`}
        action="Delete the channel"
        typed={channel.name}
        busy={remove.pending}
        onConfirm={async () => {
          const { error } = await remove({ orgId, id: channel.id }, { said: `Deleted ${channel.name}` })
          ask(false)
          if (!error) onDeleted()
        }}
      >
        Its secrets are deleted, and the agent can no longer be reached through it. Its conversations stay.
        This can’t be undone.
      </ConfirmDialog>
    </Panel>
  )
}
