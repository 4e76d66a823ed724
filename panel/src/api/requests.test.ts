import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { clientNow, resetClient } from './current-client'
import { graphql } from './graphql'
import { readFresh } from './requests'

const Name = graphql(`
  query NameRead { viewer { user { id name } } }
`)

let asked: ((name: string) => void)[]

/** The service answers a request, as soon as it is sent, with the name that it knew then. */
async function answers(index: number, name: string) {
  await vi.waitFor(() => expect(asked.length).toBeGreaterThan(index))
  asked[index]?.(name)
}

const nameRead = async () => (await readFresh(clientNow(), Name, {})).data?.viewer?.user.name

beforeEach(() => {
  asked = []
  resetClient()
  const answer = (name: string) => {
    const viewer = { __typename: 'Viewer', user: { __typename: 'User', id: 1, name } }
    const headers = { 'content-type': 'application/json' }
    return new Response(JSON.stringify({ data: { viewer } }), { headers })
  }
  vi.stubGlobal('fetch', () => new Promise((done) => asked.push((name) => done(answer(name)))))
})
afterEach(() => vi.unstubAllGlobals())

test('a request that was sent before does not count: another follows it', async () => {
  const shown: (string | undefined)[] = []
  const page = clientNow()
    .query(Name, {})
    .subscribe(({ data }) => shown.push(data?.viewer?.user.name))
  const read = nameRead()
  await answers(0, 'before')
  await answers(1, 'after')
  expect(await read).toBe('after')
  expect(shown.at(-1)).toBe('after')
  expect(asked).toHaveLength(2)
  page.unsubscribe()
})

test('what is not under way is asked for once', async () => {
  const read = nameRead()
  await answers(0, 'now')
  expect(await read).toBe('now')
  expect(asked).toHaveLength(1)
})
