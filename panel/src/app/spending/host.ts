// Hosts and their ports in words.

/** The port that no one has to name. */
export const HTTPS = 443

export const hostAndPort = (host: string, port: number) => (port === HTTPS ? host : `${host}:${port}`)
