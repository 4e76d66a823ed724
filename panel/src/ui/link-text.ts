// Whether a link of an agent may be followed, and what to show so that no one is misled. Pure, tested.

export interface SafeLink {
  href: string
  /** To be shown beside the link, because its text does not say where it leads. */
  host: string | null
}

export function linkOf(url: string, text: string): SafeLink | null {
  let parsed: URL
  try {
    parsed = new URL(url)
  } catch {
    // Relative addresses would lead into the panel.
    return null
  }
  if (parsed.protocol === 'mailto:') {
    const address = decodeURIComponentSafe(parsed.pathname)
    return { href: parsed.href, host: text.includes(address) ? null : address }
  }
  if (parsed.protocol !== 'http:' && parsed.protocol !== 'https:') return null
  // Name and password before the host are only there to mislead.
  parsed.username = ''
  parsed.password = ''
  return { href: parsed.href, host: namesHost(text, parsed.host) ? null : parsed.host }
}

/** The text is the address itself. `example.com` as text of a link to elsewhere is not. */
function namesHost(text: string, host: string): boolean {
  const plain = text
    .trim()
    .toLowerCase()
    .replace(/^https?:\/\//, '')
  return (
    plain === host ||
    plain.startsWith(`${host}/`) ||
    plain.startsWith(`${host}?`) ||
    plain.startsWith(`${host}#`)
  )
}

function decodeURIComponentSafe(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
