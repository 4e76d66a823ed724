// Fails if a generated file is not what its source gives: the types of the schema, and the bounds.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bounds } from './bounds.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'muster-panel-'))
const types = join(folder, 'schema.d.ts')
const stale = []
try {
  execFileSync(join(root, 'node_modules/.bin/gql.tada'), ['generate-output', '--output', types], {
    cwd: root,
    stdio: 'pipe',
  })
  if (readFileSync(types, 'utf8') !== readFileSync(join(root, 'src/api/schema.d.ts'), 'utf8'))
    stale.push('src/api/schema.d.ts')
  if (bounds() !== readFileSync(join(root, 'src/api/bounds.json'), 'utf8')) stale.push('src/api/bounds.json')
} finally {
  rmSync(folder, { recursive: true })
}
if (stale.length > 0) {
  console.error(
    `${stale.join(' and ')}: not what the schema gives. Run \`npm run generate\` and commit the result.`,
  )
  process.exit(1)
}
