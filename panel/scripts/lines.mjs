// Fails if a file of the source is longer than the house rules allow. What is generated does not count.
import { readdirSync, readFileSync } from 'node:fs'

const MOST = 300
const source = new URL('../src/', import.meta.url)

const long = readdirSync(source, { recursive: true })
  .filter((path) => /\.(tsx?|css)$/.test(path) && !path.endsWith('.d.ts'))
  .map((path) => ({ path, lines: readFileSync(new URL(path, source), 'utf8').split('\n').length - 1 }))
  .filter(({ lines }) => lines > MOST)

for (const { path, lines } of long)
  console.error(`src/${path} has ${lines} lines, more than ${MOST}: divide it.`)
process.exitCode = long.length > 0 ? 1 : 0
