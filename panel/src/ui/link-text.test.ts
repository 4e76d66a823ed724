import { expect, test } from 'vitest'
import { linkOf } from './link-text'

test('only http, https and mailto are links', () => {
  for (const url of [
    'javascript:alert(1)',
    'data:text/html,x',
    'file:///etc/passwd',
    '/o/1/approvals',
    'vbscript:x',
    '//evil.example',
  ]) {
    expect(linkOf(url, 'x'), url).toBeNull()
  }
  expect(linkOf('https://example.com/a', 'https://example.com/a')).toEqual({
    href: 'https://example.com/a',
    host: null,
  })
})

test('a text that does not name the host gets it shown', () => {
  expect(linkOf('https://evil.example/', 'Click here')?.host).toBe('evil.example')
  expect(linkOf('https://evil.example/', 'https://bank.example')?.host).toBe('evil.example')
  expect(linkOf('https://bank.example.evil.example/', 'bank.example')?.host).toBe('bank.example.evil.example')
  expect(linkOf('https://bank.example.evil.example/', 'https://bank.example')?.host).toBe(
    'bank.example.evil.example',
  )
})

test('a name before the host does not survive', () => {
  expect(linkOf('https://bank.example@evil.example/x', 'y')).toEqual({
    href: 'https://evil.example/x',
    host: 'evil.example',
  })
})

test('a host that imitates another is shown in its true letters', () => {
  expect(linkOf('https://аpple.example/', 'apple.example')?.host).toBe('xn--pple-43d.example')
})
