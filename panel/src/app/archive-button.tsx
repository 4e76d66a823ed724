// Archives or restores a record. It does not ask first, because it can be undone.
import { Archive, ArchiveRestore } from 'lucide-react'
import type { ActOptions } from '../api/use-act'
import type { Governed } from '../permissions/can'
import { useRefused } from '../permissions/gate'
import type { Permission } from '../permissions/names'
import { ActionButton } from '../ui/actions'
import type { Size } from '../ui/button'

interface Props {
  /** The kind of record: "skill". */
  what: string
  /** A record without `viewerCan` is checked against the organization. */
  record: Partial<Governed> & { name: string; archivedAt: string | null }
  /** The permissions to archive and to restore. */
  may: { archive: Permission; restore: Permission }
  onArchive: (options?: ActOptions) => unknown
  onRestore: (options?: ActOptions) => unknown
  size?: Size
}

export function ArchiveButton({ what, record, may, onArchive, onRestore, size }: Props) {
  const { name, archivedAt, viewerCan } = record
  const refused = useRefused(archivedAt ? may.restore : may.archive, viewerCan ? { viewerCan } : undefined)
  const group = what.charAt(0).toUpperCase() + what.slice(1)
  const restore = () => onRestore({ said: `Restored ${name}` })
  if (archivedAt) {
    const unarchive = { id: 'record.restore', label: `Restore the ${what}`, group, refused, run: restore }
    return (
      <ActionButton size={size} icon={ArchiveRestore} action={unarchive}>
        Restore
      </ActionButton>
    )
  }
  const archive = {
    id: 'record.archive',
    label: `Archive the ${what}`,
    group,
    refused,
    run: () => void onArchive({ said: `Archived ${name}`, undo: restore }),
  }
  return (
    <ActionButton size={size} icon={Archive} action={archive}>
      Archive
    </ActionButton>
  )
}
