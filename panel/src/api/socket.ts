// The only WebSocket: opened with the first subscription, reopened forever, closed when the session ends.
import { type Client, CloseCode, createClient } from 'graphql-ws'
import { connected, disconnected, idle } from './connection'
import { sessionEnded } from './session'

/** How long the service may be silent before the socket counts as dead. */
const SILENCE_MS = 12_000
/** The session ended: retrying is useless, unless the browser has a new one by now (app/sign-in-again). */
const UNAUTHORIZED = CloseCode.Unauthorized

let client: Client | null = null
let restart: (() => void) | null = null

/** The socket's client, created on first use. */
export function socket(): Client {
  client ??= open()
  return client
}

/** Opens a new socket with the current credentials: after signing in again. */
export function reopenSocket(): void {
  if (restart) restart()
}

function open(): Client {
  const address = new URL('/graphql', location.href)
  address.protocol = address.protocol === 'https:' ? 'wss:' : 'ws:'
  let watchdog: ReturnType<typeof setTimeout> | undefined
  return createClient({
    url: address.href,
    lazy: true,
    keepAlive: 10_000,
    lazyCloseTimeout: 5_000,
    retryAttempts: Number.POSITIVE_INFINITY,
    // A restarting service is back within seconds: retry quickly at first, and never wait more than ten.
    retryWait: (attempt) => new Promise((resolve) => setTimeout(resolve, waitOf(attempt))),
    shouldRetry: (reason) => !(isClose(reason) && reason.code === UNAUTHORIZED),
    on: {
      opened: (opened) => {
        const live = opened as WebSocket
        restart = () => live.close(4205, 'Reopen')
      },
      connected: () => connected(),
      ping: (received) => {
        // The response to our ping must arrive in time.
        if (!received) watchdog = setTimeout(() => restart?.(), SILENCE_MS)
      },
      pong: (received) => {
        if (received) clearTimeout(watchdog)
      },
      closed: (reason) => {
        clearTimeout(watchdog)
        if (isClose(reason) && reason.code === UNAUTHORIZED) {
          idle()
          sessionEnded()
          // The next subscription opens a new one.
          client = null
        } else if (isClose(reason) && reason.code === 1000) {
          idle()
        } else disconnected()
      },
    },
  })
}

function waitOf(attempt: number): number {
  return Math.min(10_000, 250 * 2 ** attempt) * (0.75 + Math.random() / 2)
}

function isClose(reason: unknown): reason is { code: number } {
  return typeof reason === 'object' && reason !== null && 'code' in reason
}
