// The command that joins a machine to Muster as a server. No React here.

/** The command to run on the machine. It reads the token from standard input, hidden from the machine's other users. */
export function joinLine(token: string, serverId: number, origin: string = location.origin): string {
  const folder = `~/muster-host-${serverId}`
  const insecure = needsInsecure(origin) ? ' --insecure-http' : ''
  return `echo '${token}' | muster host join --url ${origin} --token-stdin --dir ${folder}${insecure} && ${runLine(serverId)}`
}

/** Starts the host on a machine that has joined. */
export const runLine = (serverId: number): string => `muster host run --dir ~/muster-host-${serverId}`

/** A host accepts plain HTTP only from its own machine, unless an option confirms that the network is private. */
function needsInsecure(origin: string): boolean {
  const { protocol, hostname } = new URL(origin)
  return protocol === 'http:' && !/^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
}
