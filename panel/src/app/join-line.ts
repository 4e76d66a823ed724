// The commands that join a machine to Muster as a server. None contains the token, which a shell's history would keep:
// they ask for it. No React here.

/** Joins and runs the host as the user who types it. */
export function joinLine(serverId: number, origin: string = location.origin): string {
  return `${join(origin, `~/muster-host-${serverId}`)} && ${runLine(serverId)}`
}

/** As root: makes a user for the host, joins as this user, and starts the host as a service of the system. */
export function serviceLine(serverId: number, origin: string = location.origin): string {
  const name = `muster-host-${serverId}`
  const folder = `/var/lib/${name}`
  return [
    '(id -u muster-host >/dev/null 2>&1 || useradd --system --create-home muster-host)',
    `install -d -o muster-host -m 700 ${folder}`,
    `runuser -u muster-host -- ${join(origin, folder)}`,
    `muster host unit --dir ${folder} > /etc/systemd/system/${name}.service`,
    `systemctl enable --now ${name}`,
  ].join(' && ')
}

/** Starts the host on a machine that has joined. */
export const runLine = (serverId: number): string => `muster host run --dir ~/muster-host-${serverId}`

function join(origin: string, folder: string): string {
  const insecure = needsInsecure(origin) ? ' --insecure-http' : ''
  return `muster host join --url ${origin} --token-stdin --dir ${folder}${insecure}`
}

/** A host accepts plain HTTP only from its own machine, unless an option confirms that the network is private. */
function needsInsecure(origin: string): boolean {
  const { protocol, hostname } = new URL(origin)
  return protocol === 'http:' && !/^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
}
