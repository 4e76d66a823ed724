import { CombinedError } from '@urql/core'
import { expect, test } from 'vitest'
import { EMPTY, outcome, wrongFields } from './first-start'

const refused = (code: string, errors: { pointer: string; detail: string }[] = []) =>
  new CombinedError({ graphQLErrors: [{ message: 'Refused.', extensions: { code, errors } }] })

test('every field has to be filled in', () => {
  expect(Object.keys(wrongFields(EMPTY))).toEqual(['code', 'name', 'email', 'password', 'organizationName'])
  const good = { code: 'mst_code_x', name: 'Ada', email: 'a@b.c', password: 'x', organizationName: 'Acme' }
  expect(wrongFields(good)).toEqual({})
})

test('a refusal is shown at its field, and a wrong code at the code', () => {
  const detail = 'A name is one line.'
  const named = outcome(refused('VALIDATION_FAILED', [{ pointer: '/input/organizationName', detail }]))
  expect(named).toEqual({ isTaken: false, errors: { organizationName: detail }, problem: null })
  expect(outcome(refused('LINK_INVALID')).errors).toEqual({ code: 'Refused.' })
  expect(outcome(refused('RATE_LIMITED')).problem).toMatch(/Too many attempts/)
})

test('the form ends when another person was first', () => {
  expect(outcome(refused('CONFLICT')).isTaken).toBe(true)
})
