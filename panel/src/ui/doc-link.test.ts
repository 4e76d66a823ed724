import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const SOURCE = new URL('../', import.meta.url)
const DOCS = new URL('../../../docs/', import.meta.url)

/** The name of a heading in links, as the service makes it. */
const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(' ', '-')
    .replaceAll(/[^\p{L}\p{N}_-]/gu, '')

function anchorsOf(page: string): string[] {
  const text = readFileSync(new URL(page, DOCS), 'utf8')
  const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    anchorOf(heading?.replaceAll('`', '') ?? ''),
  )
  return [...headings, ...[...text.matchAll(/<a id="([^"]+)"/g)].map(([, id]) => id ?? '')]
}

const links = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
  .filter((path) => /\.tsx?$/.test(path) && !path.includes('.test.'))
  .flatMap((path) => {
    const text = readFileSync(new URL(path.replaceAll('\\', '/'), SOURCE), 'utf8')
    const found = text.matchAll(/\b(?:(?:doc|to)="|to: '|guide: '\/docs\/)([\w/-]+\.md(?:#[^"']+)?)["']/g)
    return [...found].map(([, link = '']) => link)
  })

test('each link to the documentation leads to a page and a part that exist', () => {
  expect(links.length).toBeGreaterThan(90)
  const broken = links.filter((link) => {
    const [page = '', part] = link.split('#')
    if (!existsSync(new URL(page, DOCS))) return true
    return part !== undefined && !anchorsOf(page).includes(part)
  })
  expect(broken).toEqual([])
})
