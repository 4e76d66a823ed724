// The one place that handles what a person may not do. A refused control stays visible, greyed out; pressing it says why,
// and who can change that.
import { type ReactNode, useMemo } from 'react'
import { useOrg } from '../app/organization'
import { can, type Governed } from './can'
import type { Permission } from './names'
import { RefusalContext } from './refusal'
import { explain } from './why-store'

interface Props {
  /** The record it is done to. Without: the organization itself, for what is created. */
  on?: Governed | null
  may: Permission
  children: ReactNode
}

export function Gate({ on, may, children }: Props) {
  const refused = useRefused(may, on)
  const value = useMemo(() => (refused ? { explain: refused } : null), [refused])
  return <RefusalContext value={value}>{children}</RefusalContext>
}

/** Null if the person may; otherwise what shows why not. For menu entries and actions. */
export function useRefused(may: Permission, on?: Governed | null): (() => void) | null {
  const org = useOrg()
  const allowed = on ? can(on, may) : org.can(may)
  return useMemo(() => (allowed ? null : () => explain(org.id, may)), [allowed, org.id, may])
}
