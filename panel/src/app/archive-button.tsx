// Archives a record or brings it back. No question is asked: it can be undone.
import { Archive, ArchiveRestore } from 'lucide-react'
import type { ActOptions } from '../api/use-act'
import type { Governed } from '../permissions/can'
import { Gate } from '../permissions/gate'
import type { Permission } from '../permissions/names'
import { Button } from '../ui/button'

interface Props {
  record: Governed & { name: string; archivedAt: string | null }
  /** Who may archive, and who may bring it back. */
  may: { archive: Permission; restore: Permission }
  onArchive: (options?: ActOptions) => unknown
  onRestore: (options?: ActOptions) => unknown
}

export function ArchiveButton({ record, may, onArchive, onRestore }: Props) {
  const { name, archivedAt } = record
  if (archivedAt) {
    return (
      <Gate on={record} may={may.restore}>
        <Button icon={ArchiveRestore} onClick={() => onRestore({ said: `${name} is back` })}>
          Bring back
        </Button>
      </Gate>
    )
  }
  return (
    <Gate on={record} may={may.archive}>
      <Button
        icon={Archive}
        onClick={() =>
          onArchive({ said: `Archived ${name}`, undo: () => onRestore({ said: `${name} is back` }) })
        }
      >
        Archive
      </Button>
    </Gate>
  )
}
