import { expect, test } from 'vitest'
import { deviceOf } from './device'

test('browsers are named, although they all claim to be each other', () => {
  const chrome =
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36'
  expect(deviceOf(chrome, 'BROWSER')).toEqual({ kind: 'computer', name: 'Chrome on Linux' })
  expect(deviceOf(`${chrome} Edg/156.0`, 'BROWSER').name).toBe('Edge on Linux')
  const phone =
    'Mozilla/5.0 (iPhone; CPU iPhone OS 26_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Mobile/15E148 Safari/604.1'
  expect(deviceOf(phone, 'BROWSER')).toEqual({ kind: 'phone', name: 'Safari on iPhone' })
})

test('a program is called what it calls itself', () => {
  expect(deviceOf('muster-cli/0.4 (linux)', 'TOKENS')).toEqual({ kind: 'program', name: 'muster-cli/0.4' })
  expect(deviceOf(null, 'TOKENS').name).toBe('A program that did not say its name')
})
