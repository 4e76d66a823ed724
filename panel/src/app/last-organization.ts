// Remembers the last organization shown in this browser: only its id, no secret.
const KEY = 'muster.organization'

export function lastOrganization(): number | null {
  try {
    return Number(localStorage.getItem(KEY)) || null
  } catch {
    return null
  }
}

export function rememberOrganization(id: number | null): void {
  try {
    if (id === null) localStorage.removeItem(KEY)
    else localStorage.setItem(KEY, String(id))
  } catch {
    // Storage is blocked: the first organization is shown instead.
  }
}
