// The top of a channel's peek: its problems and its facts.
import { Link } from '@tanstack/react-router'
import { Power, PowerOff } from 'lucide-react'
import { useAct } from '../../api/use-act'
import { useOrg } from '../../app/organization'
import { useRefused } from '../../permissions/gate'
import { ActionButton } from '../../ui/actions'
import { Avatar } from '../../ui/avatar'
import { Copy } from '../../ui/copy'
import { Notice } from '../../ui/notice'
import { Fact, Facts } from '../../ui/panel'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import { type Channel, UpdateChannel } from './channel'
import { Guide } from './guide'
import { ChannelState, isDisconnected, reasonOf } from './state'
import { transportName } from './transports'

export function Head({ channel }: { channel: Channel }) {
  const { agent } = channel
  return (
    <div className="mb-8 space-y-4">
      <Problems channel={channel} />
      <Facts>
        <Fact name="State">
          <span className="flex flex-wrap items-center gap-2">
            <ChannelState {...channel} />
            <Toggle channel={channel} />
          </span>
        </Fact>
        <LinkState channel={channel} />
        <Fact name="Agent">{agent ? <AgentLink agent={agent} /> : 'Deleted'}</Fact>
        <Fact name="Transport">
          {transportName(channel.transport)}
          <span className="block text-sm">
            <Guide transport={channel.transport} />
          </span>
        </Fact>
        <Bot channel={channel} />
        {channel.inboundPath && <Inlet channel={channel} path={channel.inboundPath} />}
        <Fact name="Last message">
          <Time at={channel.lastActivityAt} none="none yet" />
        </Fact>
        <Fact name="Created">
          <Time at={channel.createdAt} />
        </Fact>
      </Facts>
    </div>
  )
}

/** The problems that block messages, and how to fix them. */
function Problems({ channel }: { channel: Channel }) {
  const { isActive, inactiveReason, link, warnings, webhook, direction, notifyConversation } = channel
  const isDeaf = webhook !== null && !webhook.hasInboundSecret && direction !== 'OUTBOUND'
  return (
    <>
      {!isActive && <Notice tone="warn">{reasonOf(inactiveReason)}</Notice>}
      {isDisconnected(channel) && (
        <Notice tone="warn">
          <p>No messages come in at the moment. Muster keeps trying.</p>
          {link?.cause && (
            <p className="mt-1 break-words">
              <Visible text={link.cause} />
            </p>
          )}
        </Notice>
      )}
      {isDeaf && (
        <Notice tone="warn">Nothing comes in until the channel has a secret for incoming messages.</Notice>
      )}
      {notifyConversation?.status === 'ARCHIVED' && (
        <Notice tone="warn">
          The conversation that is notified of incoming messages is archived, so it gets no notices. Reopen
          it, or choose another one below.
        </Notice>
      )}
      {warnings.length > 0 && (
        <Notice tone="warn">
          <ul className="space-y-1">
            {warnings.map((warning) => (
              <li key={warning} className="break-words">
                <Visible text={warning} />
              </li>
            ))}
          </ul>
        </Notice>
      )}
    </>
  )
}

function Toggle({ channel }: { channel: Channel }) {
  const org = useOrg()
  const update = useAct(UpdateChannel)
  const { isActive, name } = channel
  const put = (on: boolean) => ({ orgId: org.id, id: channel.id, input: { isActive: on } })
  const toggle = () =>
    void update(put(!isActive), {
      said: isActive ? `Switched ${name} off` : `Switched ${name} on`,
      undo: () => update(put(isActive)),
    })
  return (
    <ActionButton
      size="sm"
      icon={isActive ? PowerOff : Power}
      busy={update.pending}
      action={{
        id: 'channel.switch',
        label: isActive ? 'Switch the channel off' : 'Switch the channel on',
        group: 'Channel',
        refused: useRefused('agent.edit', channel),
        run: toggle,
      }}
    >
      {isActive ? 'Switch off' : 'Switch on'}
    </ActionButton>
  )
}

/** Whether the vendor is connected. Nothing to show for channels without a connection. */
function LinkState({ channel: { isActive, link } }: { channel: Channel }) {
  if (!isActive || !link) return null
  return (
    <Fact name="Listening">
      {link.state === 'UP' ? 'since ' : 'not since '}
      <Time at={link.since} as="stamp" none="now" />
    </Fact>
  )
}

function AgentLink({ agent }: { agent: NonNullable<Channel['agent']> }) {
  const org = useOrg()
  return (
    <Link
      to="/o/$org/agents/$id"
      params={{ org: org.id, id: agent.id }}
      className="link inline-flex max-w-full items-center gap-1.5"
    >
      <Avatar name={agent.name} url={agent.avatarUrl} square size="sm" />
      <span className="truncate">
        <Visible text={agent.name} />
      </span>
    </Link>
  )
}

function Bot({ channel: { botUsername, inviteUrl } }: { channel: Channel }) {
  if (!botUsername) return null
  const isLink = inviteUrl?.startsWith('https://')
  return (
    <Fact name="Bot">
      <span className="break-all">
        <Visible text={botUsername} />
      </span>
      {isLink && inviteUrl && (
        <>
          {' · '}
          <a
            href={inviteUrl}
            target="_blank"
            rel="noopener noreferrer nofollow"
            className="link"
            data-tip={inviteUrl}
          >
            Add the bot to a group
          </a>
        </>
      )}
    </Fact>
  )
}

/** The full address for senders. */
function Inlet({ channel, path }: { channel: Channel; path: string }) {
  const url = location.origin + path
  return (
    <Fact name="Receives at">
      <span className="flex items-center gap-1">
        <code className="min-w-0 break-all font-mono text-sm">{url}</code>
        <Copy text={url} label="Copy the address" />
      </span>
      {channel.transport === 'WEBHOOK' && (
        <p className="mt-1 text-sm text-muted">
          By POST, and signed: the guide explains the format and the signature.
        </p>
      )}
    </Fact>
  )
}
