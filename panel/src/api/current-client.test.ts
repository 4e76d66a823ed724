import { afterEach, expect, test, vi } from 'vitest'
import { clientNow, resetClient } from './current-client'
import { graphql } from './graphql'

const SignOut = graphql(`
  mutation SignOutOnce { signOut }
`)

afterEach(() => vi.unstubAllGlobals())

test('a replaced client sends nothing more', async () => {
  const headers = { 'content-type': 'application/json' }
  const sent = vi.fn(async () => new Response('{"data":{"signOut":true}}', { headers }))
  vi.stubGlobal('fetch', sent)
  const send = async (client = clientNow()) => (await client.mutation(SignOut, {}).toPromise()).error
  const before = clientNow()
  expect(await send()).toBeUndefined()
  resetClient()
  expect(await send(before)).toBeDefined()
  expect(sent).toHaveBeenCalledTimes(1)
  expect(await send()).toBeUndefined()
  expect(sent).toHaveBeenCalledTimes(2)
})
