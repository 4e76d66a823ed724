// The denial being explained. permissions/why-dialog shows it and is loaded on demand.
export interface Why {
  orgId: number
  permission: string
}

let why: Why | null = null
const listeners = new Set<() => void>()

export const whyNow = () => why

export function onWhy(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Explains why the user lacks a permission, and who can change that. */
export function explain(orgId: number, permission: string): void {
  set({ orgId, permission })
}

export function closeWhy(): void {
  set(null)
}

function set(next: Why | null): void {
  why = next
  for (const listener of listeners) listener()
}
