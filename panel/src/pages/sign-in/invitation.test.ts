import { CombinedError } from '@urql/core'
import { expect, test } from 'vitest'
import { nextStep, offerText } from './invitation'

const refused = (code: string, message: string, more: object = {}) =>
  new CombinedError({ graphQLErrors: [{ message, extensions: { code, ...more } }] as never })
const KNOWN = refused('SIGN_IN_FAILED', 'It has an account.', { details: { email: 'ada@example.org' } })
const needs = (name: string) =>
  refused('VALIDATION_FAILED', 'no', {
    errors: [{ pointer: `/${name}`, detail: `A new account requires \`${name}\`.` }],
  })

test('an address with an account is only asked for its password, and the first time is not an error', () => {
  const answer = nextStep({ kind: 'ask' }, KNOWN)
  expect(answer).toEqual({ step: { kind: 'known', email: 'ada@example.org' }, problem: null, errors: {} })
  expect(nextStep(answer.step, KNOWN).problem).toMatch('not the password')
})

test('an address without one is asked for a name and a password', () => {
  const answer = nextStep({ kind: 'ask' }, needs('name'))
  expect(answer).toEqual({ step: { kind: 'new', named: false }, problem: null, errors: {} })
  expect(nextStep(answer.step, needs('password')).errors).toHaveProperty('password')
})

test('an account that has a name already is asked for a password alone', () => {
  expect(nextStep({ kind: 'ask' }, needs('password')).step).toEqual({ kind: 'new', named: true })
})

test('a link that does not work is reported, and nothing more is asked for', () => {
  const answer = nextStep({ kind: 'ask' }, refused('LINK_INVALID', 'This link no longer works.'))
  expect(answer).toEqual({ step: { kind: 'ask' }, problem: 'This link no longer works.', errors: {} })
})

test('an invitation names who invites which address to what', () => {
  const offer = {
    organization: 'Lakeside',
    inviter: 'Ada',
    email: 'bob@example.com',
    role: 'VIEWER',
  } as const
  expect(offerText(offer)).toBe('Ada invites you (bob@example.com) to Lakeside as Viewer.')
  expect(offerText({ ...offer, inviter: null })).toMatch(/^An administrator invites you/)
})
