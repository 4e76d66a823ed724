// The account at the vendor that a channel acts with: connecting it, its state, disconnecting it.
import { Unlink, UserRoundCheck } from 'lucide-react'
import { useState } from 'react'
import { useAct } from '../../api/use-act'
import { useOrg } from '../../app/organization'
import { Gate } from '../../permissions/gate'
import { Button } from '../../ui/button'
import { ConfirmDialog } from '../../ui/confirm'
import { Panel } from '../../ui/panel'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import { AuthorizeChannel, type Channel, DisconnectChannel } from './channel'

const GOOGLE = {
  connect: 'Connect Google account',
  note: 'Google ends authorizations after 7 days while the application’s publishing status is “Testing”. Publish it to keep them.',
}
const ACCOUNTS: Record<string, { connect: string; note?: string } | undefined> = {
  CALENDAR: GOOGLE,
  DRIVE: GOOGLE,
  CODE_HOST: {
    connect: 'Authorize at GitHub',
    note: 'Shows that you may use the installation. Then switch the channel on.',
  },
}

export function Account({ channel }: { channel: Channel }) {
  const { id: orgId } = useOrg()
  const [authorize, disconnect] = [useAct(AuthorizeChannel), useAct(DisconnectChannel)]
  const [asking, ask] = useState(false)
  const vendor = ACCOUNTS[channel.transport]
  const { providerAccount, calendar, codeHost, drive } = channel
  // A server, or a key, needs no account.
  if (!vendor || calendar?.url || codeHost?.host || drive?.url || drive?.hasPass) return null
  const isConnected = providerAccount?.connected || codeHost?.oauth?.authorized
  const name = providerAccount?.providerEmail ?? codeHost?.oauth?.userLogin
  const endsAt = providerAccount?.expiresAt ?? codeHost?.oauth?.expiresAt
  const connect = async () => {
    const { data } = await authorize({ orgId, id: channel.id })
    if (data?.authorizeChannel) location.assign(data.authorizeChannel.url)
  }
  return (
    <Panel title="Account" doc="channels/oauth.md" about={vendor.note}>
      <div className="flex flex-wrap items-center gap-2">
        <span className="grow text-sm">
          {name && <Visible text={name} />} {isConnected ? 'Connected' : 'Not connected'}
          {isConnected && endsAt && (
            <>
              {' until '}
              <Time at={endsAt} />
            </>
          )}
        </span>
        <Gate on={channel} may="agent.edit">
          <Button
            icon={UserRoundCheck}
            look={isConnected ? 'secondary' : 'primary'}
            busy={authorize.pending}
            onClick={() => void connect()}
          >
            {isConnected ? 'Connect again' : vendor.connect}
          </Button>
          {isConnected && (
            <Button icon={Unlink} onClick={() => ask(true)}>
              Disconnect
            </Button>
          )}
        </Gate>
      </div>
      <ConfirmDialog
        open={asking}
        onClose={() => ask(false)}
        title="Disconnect the account?"
        action="Disconnect"
        busy={disconnect.pending}
        onConfirm={async () => {
          await disconnect({ orgId, id: channel.id }, { said: 'Disconnected the account' })
          ask(false)
        }}
      >
        Muster deletes its tokens and revokes them at the other side. The channel works again after the
        account is connected again.
      </ConfirmDialog>
    </Panel>
  )
}
