// Writes src/api/bounds.json: the @bounds of everything that people type, from the SDL. The service checks the same
// bounds; the panel only says so earlier.
import { readFileSync, writeFileSync } from 'node:fs'
import { Kind, parse, valueFromASTUntyped } from 'graphql'
import { sdl } from './sdl.mjs'

const at = (name) => new URL(`../${name}`, import.meta.url)

/** All bounds by `Type.field` for inputs, and `mutation.argument` for what mutations take directly. */
export function bounds() {
  const found = {}
  const note = (owner, node) => {
    const directive = node.directives.find(({ name }) => name.value === 'bounds')
    if (!directive) return
    const entries = directive.arguments.map(({ name, value }) => [name.value, valueFromASTUntyped(value)])
    found[`${owner}.${node.name.value}`] = Object.fromEntries(entries)
  }
  for (const definition of parse(readFileSync(at(sdl()), 'utf8')).definitions) {
    if (definition.kind === Kind.INPUT_OBJECT_TYPE_DEFINITION) {
      for (const field of definition.fields) note(definition.name.value, field)
    }
    if (definition.kind === Kind.OBJECT_TYPE_DEFINITION && definition.name.value === 'Mutation') {
      for (const field of definition.fields)
        for (const argument of field.arguments) note(field.name.value, argument)
    }
  }
  return `${JSON.stringify(found, Object.keys(found).sort().concat(BOUNDS), 1)}\n`
}

const BOUNDS = [
  'min',
  'max',
  'minLength',
  'maxLength',
  'maxItems',
  'notBlank',
  'line',
  'digits',
  'folder',
  'notNull',
]

if (import.meta.url === `file://${process.argv[1]}`) writeFileSync(at('src/api/bounds.json'), bounds())
