// Chooses the folder of a drive among those that its account sees.
import { FolderCheck, FolderOpen } from 'lucide-react'
import { useState } from 'react'
import { type CombinedError, useClient } from 'urql'
import { useAct } from '../../api/use-act'
import { useOrg } from '../../app/organization'
import { Gate } from '../../permissions/gate'
import { Button } from '../../ui/button'
import { Panel } from '../../ui/panel'
import { ProblemView } from '../../ui/problem'
import { Visible } from '../../ui/visible'
import { type Channel, ChannelFolders, UpdateChannel } from './channel'

interface Folder {
  id: string
  name: string
}
interface Listed {
  /** The folders that were opened, the last one shown. */
  path: Folder[]
  folders: Folder[]
  error?: CombinedError
}

/** The choice, once there is an account. */
export function DriveFolder({ channel }: { channel: Channel }) {
  const { drive, providerAccount } = channel
  const hasAccount = drive?.hasPass || providerAccount?.connected
  return drive && hasAccount ? <Choose channel={channel} chosen={drive} /> : null
}

interface ChooseProps {
  channel: Channel
  chosen: NonNullable<Channel['drive']>
}

function Choose({ channel, chosen }: ChooseProps) {
  const { id: orgId } = useOrg()
  const client = useClient()
  const update = useAct(UpdateChannel)
  const [listed, show] = useState<Listed | null>(null)
  const [busy, setBusy] = useState(false)
  const open = async (path: Folder[]) => {
    setBusy(true)
    const variables = { orgId, id: channel.id, parent: path.at(-1)?.id ?? null }
    const asked = client.query(ChannelFolders, variables, { requestPolicy: 'network-only' })
    const { data, error } = await asked.toPromise()
    setBusy(false)
    show({ path, folders: data?.channelFolders ?? [], error })
  }
  const choose = async ({ id: folderId, name: folderName }: Folder) => {
    const input = { drive: { folderId, folderName } }
    const change = { orgId, id: channel.id, ifRevision: channel.revision, input }
    const { error } = await update(change, { said: `Chose ${folderName}` })
    if (!error) show(null)
  }
  const current = listed?.path.at(-1)
  return (
    <Panel title="Chosen folder" doc="channels/drive.md" about="New and changed files in it are messages.">
      <div className="flex flex-wrap items-center gap-2">
        <span className="grow text-sm">
          <Visible text={chosen.folderName ?? chosen.folderId ?? 'None'} />
        </span>
        <Gate on={channel} may="agent.edit">
          <Button icon={FolderOpen} busy={busy} onClick={() => void open([])}>
            Choose a folder
          </Button>
        </Gate>
      </div>
      {listed && (
        <div className="mt-3 flex flex-col items-start gap-2">
          {listed.error && <ProblemView error={listed.error} retry={() => void open(listed.path)} />}
          {listed.folders.map((folder) => (
            <Button key={folder.id} icon={FolderOpen} onClick={() => void open([...listed.path, folder])}>
              {folder.name}
            </Button>
          ))}
          {current && (
            <Button
              icon={FolderCheck}
              look="primary"
              busy={update.pending}
              onClick={() => void choose(current)}
            >
              Use {current.name}
            </Button>
          )}
        </div>
      )}
    </Panel>
  )
}
