import { expect, test } from 'vitest'
import { fixOf, isConnection } from './fix'

const request = (tool: string, input: unknown) => ({ tool, input: input as never, digest: null })

test('what a cost guard proposes is money or tokens', () => {
  const spending = { agentId: 7, costMicro: '5000000', tokens: null }
  expect(fixOf({ spending, request: null })).toEqual({
    what: 'spending',
    kind: 'money',
    proposed: 5_000_000,
    agentId: 7,
  })
  expect(fixOf({ spending: { agentId: 7, costMicro: null, tokens: 1000 }, request: null })).toEqual({
    what: 'spending',
    kind: 'tokens',
    proposed: 1000,
    agentId: 7,
  })
})

test('a connection names its host, and other tools have none', () => {
  const asked = request('network', { host: 'a.example.com', port: 8443 })
  expect(fixOf({ spending: null, request: asked })).toEqual({
    what: 'host',
    host: 'a.example.com',
    port: 8443,
  })
  expect(isConnection({ request: asked })).toBe(true)
  expect(
    fixOf({ spending: null, request: request('files.read', { host: 'a.example.com', port: 1 }) }),
  ).toBeNull()
  expect(fixOf({ spending: null, request: request('network', { host: 7 }) })).toBeNull()
})
