import { expect, test } from 'vitest'
import { DIALOG_PARTS, leaves } from './leave'

const at = (pathname: string, search: object = {}) => ({ pathname, search })

test('another page, another tab and another record beside the list close the form', () => {
  expect(leaves(at('/o/1/settings'), at('/o/1/members'))).toBe(true)
  expect(leaves(at('/o/1/settings', { tab: 'safety' }), at('/o/1/settings', { tab: 'limits' }))).toBe(true)
  expect(leaves(at('/o/1/settings', { tab: 'safety' }), at('/o/1/settings'))).toBe(true)
  expect(leaves(at('/o/1/channels', { peek: 4 }), at('/o/1/channels', { peek: 5 }))).toBe(true)
  expect(leaves(at('/o/1/channels', { peek: 4 }), at('/o/1/channels'))).toBe(true)
})

test('a change that only narrows the list keeps the form open', () => {
  expect(leaves(at('/o/1/channels', { peek: 4 }), at('/o/1/channels', { peek: '4', q: 'mail' }))).toBe(false)
})

test('what closes a dialog by its address leaves the sections of the page open', () => {
  const [open, closed] = [at('/o/1/skills', { peek: 4, open: 'new' }), at('/o/1/skills', { peek: 4 })]
  expect(leaves(open, closed)).toBe(false)
  expect(leaves(open, closed, DIALOG_PARTS)).toBe(true)
})
