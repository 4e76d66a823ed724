// Handles denied permissions in one place. A denied control stays visible but greyed out; pressing it explains why, and
// who can change that.
import { type ReactNode, useEffect, useMemo, useState } from 'react'
import { useOrg } from '../app/organization'
import { can, type Governed } from './can'
import type { Permission } from './names'
import { RefusalContext } from './refusal'
import { explain } from './why-store'

interface Props {
  /** The record to check. Defaults to the organization, as for creating records. */
  on?: Governed | null
  may: Permission
  children: ReactNode
}

export function Gate({ on, may, children }: Props) {
  const refused = useRefused(may, on)
  const value = useMemo(() => (refused ? { explain: refused } : null), [refused])
  return <RefusalContext value={value}>{children}</RefusalContext>
}

/** Null if the user has the permission; otherwise a function that explains the denial. For menu entries and actions. */
export function useRefused(may: Permission, on?: Governed | null): (() => void) | null {
  const org = useOrg()
  // A record may be older than the organization, which tells of another role at once.
  const allowed = org.can(may) && (!on || can(on, may))
  return useMemo(() => (allowed ? null : () => explain(org.id, may)), [allowed, org.id, may])
}

interface FormProps {
  may: Permission
  onClose: () => void
  /** The form's dialog. */
  children: ReactNode
}

/** A form that an address opens: without the permission it explains the denial, as its disabled button does. */
export function GatedForm({ may, onClose, children }: FormProps) {
  const refused = useRefused(may)
  // A role that changes later must not discard what was typed.
  const [explain] = useState(() => refused)
  // biome-ignore lint/correctness/useExhaustiveDependencies: explained once
  useEffect(() => {
    if (!explain) return
    explain()
    onClose()
  }, [explain])
  return explain ? null : children
}
