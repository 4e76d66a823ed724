import { expect, test } from 'vitest'
import { codeVariables, refusal, safeNext } from './sign-in'

test('signing in leads to no other site', () => {
  expect(safeNext('/o/1/approvals/7?seq=3')).toBe('/o/1/approvals/7?seq=3')
  for (const next of [
    '//evil.example',
    'https://evil.example',
    '/\\evil.example',
    'javascript:alert(1)',
    undefined,
    '',
    '/sign-in',
  ]) {
    expect(safeNext(next), String(next)).toBe('/')
  }
})

test('six digits are the app’s code, with or without a gap; anything else is a recovery code', () => {
  expect(codeVariables(' 123 456 ')).toEqual({ code: '123456' })
  expect(codeVariables('123456')).toEqual({ code: '123456' })
  expect(codeVariables('abcd-efgh')).toEqual({ recoveryCode: 'abcd-efgh' })
})

test('a refused sign-in names the reference under which the log has the reason', () => {
  const of = (hash: string) => refusal(new URLSearchParams(hash))
  expect(of('error=PROVIDER_FAILED&reference=01a2-b3&state=x')).toBe(
    'The provider did not sign you in. Try again. If that does not help, tell the operator of this installation this reference: 01a2-b3',
  )
  expect(of('error=EMAIL_NOT_VERIFIED&reference=call+555')).not.toMatch(/reference|555/)
  expect(of('error=STATE_INVALID')).not.toMatch(/reference/)
  expect(of('error=toString')).toBe('You were not signed in. Try again.')
})
