// The line that turns a machine into a server of Muster. No React here.

/** What to run on the machine. The token comes by standard input, so that other users of it can't read it. */
export function joinLine(token: string, serverId: number, origin: string = location.origin): string {
  const folder = `~/muster-host-${serverId}`
  const insecure = needsInsecure(origin) ? ' --insecure-http' : ''
  return `echo '${token}' | muster host join --url ${origin} --token-stdin --dir ${folder}${insecure} && ${runLine(serverId)}`
}

/** What to run when the machine has joined, and its host is not running. */
export const runLine = (serverId: number): string => `muster host run --dir ~/muster-host-${serverId}`

/** A host takes plain http from its own machine alone, unless an option says that the way is private. */
function needsInsecure(origin: string): boolean {
  const { protocol, hostname } = new URL(origin)
  return protocol === 'http:' && !/^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
}
