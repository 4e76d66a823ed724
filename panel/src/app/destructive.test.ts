import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const source = new URL('../', import.meta.url)

// What ends or takes away something: each says what it will do before, in a dialog, or offers to take it back.
const ENDS =
  /^(archive|cancel|delete|end|leave|release|remove|restart|restore|revoke|rollback|stop|unlink)[A-Z]/

// Nothing is lost, or the button's own words say all of it. This list only shrinks.
const PLAIN: Record<string, string> = {
  deleteChannel: 'pages/channels/channel-peek.tsx asks',
  removeWhitelistOrigin: 'pages/channels/whitelist.tsx has an undo',
  revokeSession: 'signing in again makes another',
  unlinkAccount: 'signing in links it again, as the list says',
  unlinkChat: 'a code links it again',
}

test('what ends something asks first or can be taken back', () => {
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter(
    (path) => /\.tsx?$/.test(path) && !/\.test\.|\.d\.ts$/.test(path),
  )
  const silent = files.flatMap((path) => {
    const text = readFileSync(new URL(path, source), 'utf8')
    const mutations = [...text.matchAll(/mutation \w+\([^)]*\) \{\s*(\w+)/g)].map(([, name]) => name ?? '')
    const ends = mutations.filter((name) => ENDS.test(name) && !(name in PLAIN))
    const asks = /<(ConfirmDialog|FormDialog|ArchiveButton)|undo/.test(text)
    return asks ? [] : ends.map((name) => `${path}: ${name}`)
  })
  expect(silent).toEqual([])
})
