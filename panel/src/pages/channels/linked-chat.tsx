// The user's own chat with a channel's bot, in which agents' requests are asked and answered.
import { MessageCircle, Unlink } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { useAct } from '../../api/use-act'
import { useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import { Gate } from '../../permissions/gate'
import { Button } from '../../ui/button'
import { Panel } from '../../ui/panel'
import { ShownOnce } from '../../ui/shown-once'
import { Visible } from '../../ui/visible'
import { type Channel, LinkChat, LinkedChats, UnlinkChat } from './channel'

/** Only these transports prove who is writing. */
const PROVING = ['TELEGRAM', 'DISCORD', 'SLACK']

export function LinkedChat({ channel }: { channel: Channel }) {
  const org = useOrg()
  if (!PROVING.includes(channel.transport)) return null
  return org.can('approval.resolve') ? (
    <Linked channel={channel} />
  ) : (
    <Ask>
      <LinkButton busy={false} onClick={() => {}} />
    </Ask>
  )
}

function Linked({ channel }: { channel: Channel }) {
  const { id: orgId } = useOrg()
  const { data } = useLive({
    query: LinkedChats,
    variables: { orgId },
    on: ({ kind, id }) => kind === 'CHANNEL' && id === channel.id,
  })
  const [link, unlink] = [useAct(LinkChat), useAct(UnlinkChat)]
  const [code, setCode] = useState<string | null>(null)
  const chat = data?.linkedChats?.find(({ channelId }) => channelId === channel.id)
  const begin = async () => {
    const made = await link({ orgId, channelId: channel.id })
    setCode(made.data?.linkChat?.code ?? null)
  }
  return (
    <Ask>
      {chat ? (
        <div className="flex flex-wrap items-center gap-2">
          <span className="grow text-sm">
            Your chat is linked: <Visible text={chat.originName ?? chat.originId} />
          </span>
          <Button
            icon={Unlink}
            busy={unlink.pending}
            onClick={() =>
              void unlink({ orgId, channelId: channel.id }, { said: 'Your chat is no longer linked' })
            }
          >
            Unlink
          </Button>
        </div>
      ) : (
        <LinkButton busy={link.pending} onClick={() => void begin()} />
      )}
      <ShownOnce
        open={code !== null}
        title="Link your chat"
        about={`Send this to ${channel.botUsername ?? 'the bot'}, in a private chat, within ten minutes.`}
        secrets={[{ label: 'The code', text: code ?? '' }]}
        used={chat !== undefined}
        onDone={() => setCode(null)}
      >
        {chat && <p className="text-sm">The chat is linked.</p>}
      </ShownOnce>
    </Ask>
  )
}

function Ask({ children }: { children: ReactNode }) {
  return (
    <Panel
      title="Ask me here"
      doc="channels/README.md#asked-where-people-are"
      about="Agents’ requests also reach your own chat with the bot, where you can decide them."
    >
      {children}
    </Panel>
  )
}

function LinkButton({ busy, onClick }: { busy: boolean; onClick: () => void }) {
  return (
    <Gate may="approval.resolve">
      <Button icon={MessageCircle} busy={busy} onClick={onClick}>
        Link my chat
      </Button>
    </Gate>
  )
}
