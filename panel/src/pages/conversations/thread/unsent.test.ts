import { expect, test } from 'vitest'
import { read, unsentReason, write } from './unsent'

const one = { key: 'a1b2', text: 'Hello', files: [], createdAt: '2026-01-01T00:00:00.000Z' }

test('what was not sent is read as it was written, with the key of its request', () => {
  expect(read(write([one]))).toEqual([one])
  expect(write([])).toBe('')
})

test('a message without its files is another request, and names them', () => {
  const [back] = read(write([{ ...one, files: [{ name: 'plan.pdf' }] }]))
  expect(back?.key).not.toBe(one.key)
  expect(back?.key).toHaveLength(one.key.length)
  expect(unsentReason(back?.files ?? [])).toMatch('plan.pdf')
})

test('anything that can not be read counts as nothing', () => {
  expect(read('')).toEqual([])
  expect(read('{"key": 1}')).toEqual([])
  expect(read('[{"key": 1}, null]')).toEqual([])
})
