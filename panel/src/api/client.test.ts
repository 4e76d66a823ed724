import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { makeClient } from './client'
import { graphql } from './graphql'
import { listen, RETRY_MS } from './listen'
import { signedIn } from './session'

const Changes = graphql(`
  subscription ChangesReceived($orgId: Id!) { changes(orgId: $orgId) { kind id op } }
`)

interface Message {
  type: string
  id?: string
  payload?: unknown
}

let wire: Wire
let sent: Message[]

/** The service's end of the socket: it accepts everyone. */
class Wire {
  static readonly OPEN = 1
  readonly readyState = Wire.OPEN
  onopen = () => {}
  onmessage = (_: { data: string }) => {}
  constructor() {
    wire = this
    queueMicrotask(() => this.onopen())
  }
  send(text: string) {
    const message: Message = JSON.parse(text)
    if (message.type === 'connection_init') this.says({ type: 'connection_ack' })
    else sent.push(message)
  }
  says(message: Message) {
    this.onmessage({ data: JSON.stringify(message) })
  }
  close() {}
}

const client = makeClient(new AbortController().signal)
let told: (number | null)[]
const stops: (() => void)[] = []

/** Listens, and answers how to stop it. */
function begin(): () => void {
  const stop = listen(client, Changes, { orgId: 1 }, ({ changes }) => told.push(changes.id))
  stops.push(stop)
  return stop
}

/** The id of a subscription, as soon as the service knows it. */
const idOf = (index: number) =>
  vi.waitFor(() => {
    const id = sent.filter(({ type }) => type === 'subscribe')[index]?.id
    if (id === undefined) throw new Error('not yet')
    return id
  })

const tells = (to: string, id: number) => {
  const changes = { __typename: 'Change', kind: 'AGENT', id, op: 'UPDATED' }
  wire.says({ type: 'next', id: to, payload: { data: { changes } } })
}
const refuses = (id: string) =>
  wire.says({ type: 'error', id, payload: [{ message: 'Wait', extensions: { code: 'RATE_LIMITED' } }] })

beforeEach(() => {
  vi.useFakeTimers()
  vi.stubGlobal('location', { href: 'http://muster.test/' })
  vi.stubGlobal('WebSocket', Wire)
  signedIn()
  sent = []
  told = []
})
afterEach(() => {
  for (const stop of stops.splice(0)) stop()
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

test('a subscription that is refused as a whole begins again', async () => {
  begin()
  refuses(await idOf(0))
  await vi.advanceTimersByTimeAsync(RETRY_MS)
  tells(await idOf(1), 7)
  expect(told).toEqual([7])
})

test('what comes late for a subscription that is over does not end the same one, begun again', async () => {
  const stop = begin()
  const first = await idOf(0)
  stop()
  begin()
  const second = await idOf(1)
  tells(first, 1)
  refuses(first)
  wire.says({ type: 'complete', id: first })
  tells(second, 2)
  expect(told).toEqual([2])
})
