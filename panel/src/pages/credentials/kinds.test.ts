import { expect, test } from 'vitest'
import { KINDS, missingValues } from './kinds'

test('a credential of any kind needs a value in each of its fields', () => {
  for (const { value, fields } of KINDS) {
    const given = Object.fromEntries(fields.map(({ label }) => [label, 'x']))
    expect(missingValues(fields, given), value).toEqual({})
    expect(Object.keys(missingValues(fields, {})), value).toEqual(
      fields.map((_, index) => `fields.${index}.value`),
    )
  }
})
