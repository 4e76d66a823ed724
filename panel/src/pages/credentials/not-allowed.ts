// Which addresses an organization does not allow.
import { HTTPS } from '../../app/spending/host'

export interface HostPort {
  host: string
  port: number
}

/** The hosts of these http and https addresses that the list does not allow, as the service decides it. */
export function notAllowed(addresses: readonly string[], list: readonly HostPort[]): HostPort[] {
  const hosts = addresses.flatMap((address) => hostOf(address) ?? [])
  return hosts.filter(
    ({ host, port }) => !list.some((entry) => entry.port === port && covers(entry.host, host)),
  )
}

function hostOf(address: string): HostPort | null {
  if (!/^https?:/i.test(address) || !URL.canParse(address)) return null
  const { protocol, hostname, port } = new URL(address)
  return { host: hostname, port: Number(port) || (protocol === 'http:' ? 80 : HTTPS) }
}

/** `*.example.com` covers the names below it. */
const covers = (entry: string, host: string) =>
  entry.startsWith('*.') ? host.endsWith(entry.slice(1)) : entry === host
