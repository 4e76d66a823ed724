import { readFileSync } from 'node:fs'
import { Kind, parse } from 'graphql'
import { expect, test } from 'vitest'
// @ts-expect-error: a script without types
import { sdl } from '../../scripts/sdl.mjs'
import { COMPOSED, EMBEDDED, WITHOUT_ID } from './keys'

const ROOTS = ['Query', 'Mutation', 'Subscription']
const types = parse(readFileSync(sdl(), 'utf8')).definitions.flatMap((definition) =>
  definition.kind === Kind.OBJECT_TYPE_DEFINITION && !ROOTS.includes(definition.name.value)
    ? [definition]
    : [],
)

test('every type without an id says how the cache keeps it', () => {
  const known = new Set([...WITHOUT_ID, ...EMBEDDED, ...Object.keys(COMPOSED)])
  const forgotten = types
    .filter(({ fields }) => !fields?.some(({ name }) => name.value === 'id'))
    .map(({ name }) => name.value)
    .filter((name) => !known.has(name))
  expect(forgotten).toEqual([])
})

test('no list names a type that is gone', () => {
  const names = new Set(types.map(({ name }) => name.value))
  expect([...WITHOUT_ID, ...EMBEDDED, ...Object.keys(COMPOSED)].filter((name) => !names.has(name))).toEqual(
    [],
  )
})

test('a type with an id is not among those without one', () => {
  const withId = types.filter(({ fields }) => fields?.some(({ name }) => name.value === 'id'))
  expect(withId.map(({ name }) => name.value).filter((name) => WITHOUT_ID.includes(name))).toEqual([])
})
