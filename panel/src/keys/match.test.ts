import { expect, test } from 'vitest'
import { belongsToField, isSingle, nameOf, progress } from './match'

const press = (key: string, held: Partial<Parameters<typeof nameOf>[0]> = {}) => ({
  key,
  ctrlKey: false,
  metaKey: false,
  shiftKey: false,
  altKey: false,
  ...held,
})

test('Ctrl and the command key are the same modifier', () => {
  expect(nameOf(press('k', { ctrlKey: true }))).toBe('mod+k')
  expect(nameOf(press('k', { metaKey: true }))).toBe('mod+k')
})

test('shift counts for letters and named keys, not for signs that need it', () => {
  expect(nameOf(press('?', { shiftKey: true }))).toBe('?')
  expect(nameOf(press('J', { shiftKey: true }))).toBe('shift+j')
  expect(nameOf(press('Enter', { shiftKey: true }))).toBe('shift+enter')
})

test('a sequence is known step by step', () => {
  expect(progress(['g'], 'g a')).toBe('part')
  expect(progress(['g', 'a'], 'g a')).toBe('full')
  expect(progress(['g', 'b'], 'g a')).toBe('no')
})

test('characters by themselves are letters, signs and sequences of them, with shift or without', () => {
  expect(['j', '1', '/', '?', 'shift+g', 'g a'].filter((keys) => !isSingle(keys))).toEqual([])
  const others = ['mod+k', 'mod+shift+a', 'alt+j', 'end', 'enter', 'shift+enter', 'arrowdown', 'escape']
  expect(others.filter(isSingle)).toEqual([])
})

test('in a field only commands are ours, and none that edits text', () => {
  expect(belongsToField(press('j'), true)).toBe(true)
  expect(belongsToField(press('j'), false)).toBe(false)
  expect(belongsToField(press('k', { ctrlKey: true }), true)).toBe(false)
  expect(belongsToField(press('Enter', { ctrlKey: true }), true)).toBe(false)
  expect(belongsToField(press('v', { ctrlKey: true }), true)).toBe(true)
  expect(belongsToField(press('@', { ctrlKey: true, altKey: true }), true)).toBe(false)
})
