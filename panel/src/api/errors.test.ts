import { CombinedError } from '@urql/core'
import { expect, test } from 'vitest'
import { fieldErrors } from './form-errors'

const saidOf = (detail: string) => {
  const extensions = { code: 'VALIDATION_FAILED', errors: [{ pointer: '/input/email', detail }] }
  return fieldErrors(new CombinedError({ graphQLErrors: [{ message: detail, extensions }] })).email
}

test('what was typed stays as it was typed, and a sentence begins with a capital', () => {
  expect(saidOf('`not-an-address` is not a valid e-mail address.')).toBe(
    '“not-an-address” is not a valid e-mail address.',
  )
  expect(saidOf('an address must be at most `max` characters.')).toBe(
    'An address must be at most max characters.',
  )
})
