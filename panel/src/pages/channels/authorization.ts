// What a vendor's page sends back after an authorization.

export interface Returned {
  orgId: number
  id: number
  state: string
  /** Null if the vendor refused. */
  code: string | null
  error: string | null
}

/** Null if the address is incomplete. The state begins with the organization and the channel. */
export function returnedIn(search: string): Returned | null {
  const given = new URLSearchParams(search)
  const state = given.get('state') ?? ''
  const [, org, id] = /^([1-9]\d{0,15})\.([1-9]\d{0,15})\.[\w-]+$/.exec(state) ?? []
  const [code, error] = [given.get('code'), given.get('error')]
  if (!org || !id || !(code || error)) return null
  return { orgId: Number(org), id: Number(id), state, code, error }
}

/** Why a vendor sent no code, in words. */
export const refusalOf = (error: string): string =>
  error === 'access_denied'
    ? 'Access was not allowed, so nothing was connected.'
    : `The other side refused: ${error.slice(0, 100)}`
