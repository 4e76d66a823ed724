import { expect, test } from 'vitest'
import { codeVariables, safeNext } from './sign-in'

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
