// A channel beside the list: its state, its connection, its allowed senders, its alert recipients.
import { Trash2 } from 'lucide-react'
import { useState } from 'react'
import { useAct } from '../../api/use-act'
import { useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import { Gate, useRefused } from '../../permissions/gate'
import { ActionButton } from '../../ui/actions'
import { ConfirmDialog } from '../../ui/confirm'
import { Panel } from '../../ui/panel'
import { Peek } from '../../ui/peek'
import { ProblemView } from '../../ui/problem'
import { Sections } from '../../ui/section-form'
import { ListSkeleton } from '../../ui/skeleton'
import { Account } from './account'
import { AlertRecipients } from './alert-recipients'
import { Calendars } from './calendars'
import { type Channel, ChannelQuery, DeleteChannel } from './channel'
import { DriveFolder } from './drive-folder'
import { Head } from './head'
import { Incoming } from './incoming'
import { LinkedChat } from './linked-chat'
import { Refused } from './refused'
import { Repositories, typedOf } from './repositories'
import { General, TransportSection } from './sections'
import { Skipped } from './skipped'
import { TestMessage } from './test-message'
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
  const receives = channel && channel.direction !== 'OUTBOUND'
  return (
    <Peek title={channel?.name ?? 'Channel'} onClose={onClose}>
      {error && !channel ? (
        <ProblemView error={error} retry={refetch} />
      ) : loading || !channel ? (
        <ListSkeleton />
      ) : (
        <div className="p-4">
          <Head channel={channel} />
          <Account channel={channel} />
          <DriveFolder channel={channel} />
          <TestMessage channel={channel} />
          <Refused channel={channel} />
          <Skipped channel={channel} />
          {receives && <Whitelist channel={channel} />}
          <Gate on={channel} may="agent.edit">
            <Sections>
              <General channel={channel} />
              {groupsOf(channel.transport, channel.direction).map((group) => (
                <TransportSection key={group.title} channel={channel} group={typedOf(channel, group)} />
              ))}
              <Calendars channel={channel} />
              <Repositories channel={channel} />
              {receives && <Incoming channel={channel} />}
            </Sections>
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
    <Panel
      title="Delete"
      about="The secrets and the list of senders are deleted as well. The conversations stay."
    >
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
        The secrets are deleted, and the agent can no longer be reached through this channel. The
        conversations stay. This can’t be undone.
      </ConfirmDialog>
    </Panel>
  )
}
