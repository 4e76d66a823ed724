// Writes src/permissions/names.ts: the permissions that the schema's root fields require. Every permission opens one of
// them (`tests/it/policies/permits.rs`).
import { readFileSync, writeFileSync } from 'node:fs'
import { parse, visit } from 'graphql'
import { sdl } from './sdl.mjs'

const at = (name) => new URL(`../${name}`, import.meta.url)

export function permissions() {
  const found = new Set()
  visit(parse(readFileSync(at(sdl()), 'utf8')), {
    Directive({ name, arguments: given }) {
      const permission = given.find(({ name }) => name.value === 'permission')
      if (name.value === 'permit' && permission) found.add(permission.value.value)
    },
  })
  const lines = [...found].sort().map((name) => `  | '${name}'`)
  return `// Generated from the schema by \`npm run generate\`.\nexport type Permission =\n${lines.join('\n')}\n`
}

if (import.meta.url === `file://${process.argv[1]}`)
  writeFileSync(at('src/permissions/names.ts'), permissions())
