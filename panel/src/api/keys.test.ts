import { readFileSync } from 'node:fs'
import { Kind, parse } from 'graphql'
import { expect, test } from 'vitest'
// @ts-expect-error: a script without types
import { sdl } from '../../scripts/sdl.mjs'
import { COMPOSED, EMBEDDED } from './keys'

const ROOTS = ['Query', 'Mutation', 'Subscription']
const types = parse(readFileSync(sdl(), 'utf8')).definitions.flatMap((definition) =>
  definition.kind === Kind.OBJECT_TYPE_DEFINITION && !ROOTS.includes(definition.name.value)
    ? [definition]
    : [],
)

test('every type without an id says how the cache keeps it', () => {
  const known = new Set([...EMBEDDED, ...Object.keys(COMPOSED)])
  const forgotten = types
    .filter(({ fields }) => !fields?.some(({ name }) => name.value === 'id'))
    .map(({ name }) => name.value)
    .filter((name) => !known.has(name))
  expect(forgotten).toEqual([])
})

test('no list names a type that is gone', () => {
  const names = new Set(types.map(({ name }) => name.value))
  expect([...EMBEDDED, ...Object.keys(COMPOSED)].filter((name) => !names.has(name))).toEqual([])
})
