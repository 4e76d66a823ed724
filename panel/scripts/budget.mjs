// Holds the sizes of the first load, in KB of gzip. `npm run build` first, or name another folder with a build.
import { readdirSync, readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { gzipSync } from 'node:zlib'

const folder = process.argv[2]
const dist = folder ? pathToFileURL(`${folder}/`) : new URL('../dist/', import.meta.url)
const files = new Map()
const file = (name) => {
  if (!files.has(name)) files.set(name, readFileSync(new URL(name, dist)))
  return files.get(name)
}
const kb = (names) =>
  [...names].reduce((sum, name) => sum + gzipSync(file(name), { level: 9 }).length, 0) / 1024

/** A chunk and all that it needs before it runs. */
function closure(name, found = new Set()) {
  if (found.has(name)) return found
  found.add(name)
  const text = file(name).toString()
  for (const [, imported] of text.matchAll(/(?:from|import)\s*["`']\.\/([^"`']+\.js)["`']/g))
    closure(`assets/${imported}`, found)
  return found
}

const entry = closure('assets/panel.js')
const frame = ['index.html', 'assets/theme.js', 'assets/style.css']
const pages = [
  ...file('assets/panel.js')
    .toString()
    .matchAll(/import\(["`']\.\/([^"`']+)["`']\)/g),
].map(([, name]) => `assets/${name}`)
const shell = closure('assets/shell.js')
/** What is there before the page: behind the sign-in the frame as well. */
const before = (name) =>
  /^assets\/(sign-in|first-start)-/.test(name) ? entry : new Set([...entry, ...shell])
const rest = (name) => new Set([...closure(name)].filter((each) => !before(name).has(each)))

/** Where people come in: the whole of it counts. Other pages are measured by what they add. */
const FIRST = { 'sign-in-sign-in-page': 130, 'overview-overview-page': 140 }
/** The most that a page adds to what is there: its own chunk, and those that it shares with some others. */
const PAGE = 55
/** Chunks that are loaded when they are needed, and no page's. The API's reference is no part of the panel. */
const LATER = { overlays: 70, markdown: 30, palette: 40, 'policies-text-editor': 110, reference: 470 }

const lines = [
  ['entry', kb(entry), 115],
  ['shell', kb([...shell].filter((each) => !entry.has(each))), 18],
]
for (const page of [...new Set(pages)].sort()) {
  const name = page.replace(/^assets\/|\.js$/g, '')
  if (name === 'shell') continue
  if (readdirSync(new URL('assets/', dist)).includes(`${name}.js`))
    lines.push([`page ${name}`, kb(rest(page)), PAGE])
}
for (const [name, limit] of Object.entries(FIRST)) {
  lines.push([
    `first load ${name}`,
    kb(new Set([...frame, ...before(`assets/${name}.js`), ...closure(`assets/${name}.js`)])),
    limit,
  ])
}
for (const [name, limit] of Object.entries(LATER)) {
  if (readdirSync(new URL('assets/', dist)).includes(`${name}.js`))
    lines.push([`later ${name}`, kb([`assets/${name}.js`]), limit])
}
const over = lines.filter(([, size, limit]) => size > limit)
for (const [name, size, limit] of lines)
  console.log(`${size.toFixed(1).padStart(6)} of ${limit} KB  ${name}${size > limit ? '  TOO BIG' : ''}`)
if (over.length > 0) process.exit(1)
