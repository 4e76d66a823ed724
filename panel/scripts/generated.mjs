// Fails if a generated file is not what the schema gives: its types, the bounds, the permissions.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bounds } from './bounds.mjs'
import { permissions } from './permissions.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'muster-panel-'))
const types = join(folder, 'schema.d.ts')
const stale = []
try {
  execFileSync(join(root, 'node_modules/.bin/gql.tada'), ['generate-output', '--output', types], {
    cwd: root,
    stdio: 'pipe',
  })
  const current = {
    'src/api/schema.d.ts': readFileSync(types, 'utf8'),
    'src/api/bounds.json': bounds(),
    'src/permissions/names.ts': permissions(),
  }
  for (const [file, text] of Object.entries(current))
    if (text !== readFileSync(join(root, file), 'utf8')) stale.push(file)
} finally {
  rmSync(folder, { recursive: true })
}
if (stale.length > 0) {
  console.error(
    `${stale.join(', ')}: not what the schema gives. Run \`npm run generate\` and commit the result.`,
  )
  process.exit(1)
}
