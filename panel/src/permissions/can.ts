// Whether the user may act on a record, according to the `viewerCan` that the service sent with it.
import type { Permission } from './names'

/** A record that was fetched with its `viewerCan`. */
export interface Governed {
  viewerCan: readonly string[]
}

export function can(record: Governed | null | undefined, permission: Permission): boolean {
  return record?.viewerCan.includes(permission) ?? false
}
