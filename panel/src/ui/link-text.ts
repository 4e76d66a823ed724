// Whether a link from an agent may be followed, and which host to show so that it misleads no one. Pure, tested.

export interface SafeLink {
  href: string
  /** Shown beside the link if its text hides where it leads. */
  host: string | null
}

export function linkOf(url: string, text: string): SafeLink | null {
  let parsed: URL
  try {
    parsed = new URL(url)
  } catch {
    // Relative links would lead into the panel.
    return null
  }
  if (parsed.protocol === 'mailto:') {
    const address = decodeURIComponentSafe(parsed.pathname)
    return { href: parsed.href, host: text.includes(address) ? null : address }
  }
  if (parsed.protocol !== 'http:' && parsed.protocol !== 'https:') return null
  // A user name or password before the host only misleads.
  parsed.username = ''
  parsed.password = ''
  return { href: parsed.href, host: namesHost(text, parsed.host) ? null : parsed.host }
}

/** Whether the text is the address itself. `example.com` as the text of a link to another host is not. */
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
