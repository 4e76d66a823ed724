// Chooses the folder of a drive among those that its account sees.
import { FolderCheck, FolderOpen } from 'lucide-react'
import { useState } from 'react'
import { useClient } from 'urql'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useOrg } from '../../app/organization'
import { Gate } from '../../permissions/gate'
import { Button } from '../../ui/button'
import { Panel } from '../../ui/panel'
import { Visible } from '../../ui/visible'
import { type Channel, UpdateChannel } from './channel'

const FoldersOf = graphql(`
  query DriveFolders($orgId: Id!, $id: Id!, $parent: String) {
    driveFolders(orgId: $orgId, id: $id, parent: $parent) { folders { id name } problem }
  }
`)

interface Folder {
  id: string
  name: string
}
interface Listed {
  /** The folders that were opened, the last one shown. */
  path: Folder[]
  folders: Folder[]
  problem: string | null
}

export function DriveFolder({ channel }: { channel: Channel }) {
  const { id: orgId } = useOrg()
  const client = useClient()
  const update = useAct(UpdateChannel)
  const [listed, show] = useState<Listed | null>(null)
  const [busy, setBusy] = useState(false)
  if (!channel.drive) return null
  const open = async (path: Folder[]) => {
    setBusy(true)
    const variables = { orgId, id: channel.id, parent: path.at(-1)?.id ?? null }
    const { data } = await client.query(FoldersOf, variables, { requestPolicy: 'network-only' }).toPromise()
    setBusy(false)
    const { folders, problem } = data?.driveFolders ?? {
      folders: [],
      problem: 'The folders can’t be listed.',
    }
    show({ path, folders, problem })
  }
  const choose = async ({ id: folderId, name: folderName }: Folder) => {
    const input = { drive: { folderId, folderName } }
    const change = { orgId, id: channel.id, ifRevision: channel.revision, input }
    const { error } = await update(change, { said: `Chose ${folderName}` })
    if (!error) show(null)
  }
  const current = listed?.path.at(-1)
  const { folderId, folderName } = channel.drive
  return (
    <Panel title="Chosen folder" doc="channels/drive.md" about="New and changed files in it are messages.">
      <div className="flex flex-wrap items-center gap-2">
        <span className="grow text-sm">
          <Visible text={folderName ?? folderId ?? 'None'} />
        </span>
        <Gate on={channel} may="agent.edit">
          <Button icon={FolderOpen} busy={busy} onClick={() => void open([])}>
            Choose a folder
          </Button>
        </Gate>
      </div>
      {listed && (
        <div className="mt-3 flex flex-col items-start gap-2">
          {listed.problem && <p className="text-sm">{listed.problem}</p>}
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
