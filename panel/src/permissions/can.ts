// Whether the person may do something with a record: what the service said with the record itself.
import type { Permission } from './names'

/** A record that was read with its `viewerCan`. */
export interface Governed {
  viewerCan: readonly string[]
}

export function can(record: Governed | null | undefined, permission: Permission): boolean {
  return record?.viewerCan.includes(permission) ?? false
}
