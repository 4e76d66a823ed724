// Formats hosts and ports.

/** The port that may be omitted. */
export const HTTPS = 443

export const hostAndPort = (host: string, port: number) => (port === HTTPS ? host : `${host}:${port}`)
