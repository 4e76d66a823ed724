// The secret that follows the `#` of a link, which browsers do not send.
import { useEffect, useState } from 'react'

/** Null if the address has none. Removed from the address at once, and so from the history. */
export function useAddressSecret(name: 'code' | 'token'): string | null {
  const [secret] = useState(() => new URLSearchParams(location.hash.slice(1)).get(name))
  useEffect(() => {
    if (location.hash) history.replaceState(history.state, '', location.pathname)
  }, [])
  return secret
}
