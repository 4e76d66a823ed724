import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { expectField, listen, takeTypedAhead } from './registry'

let answer: (event: unknown) => void
beforeEach(() => {
  vi.stubGlobal('HTMLElement', class {})
  vi.stubGlobal('HTMLInputElement', class {})
  vi.stubGlobal('document', {
    addEventListener: (_: string, press: typeof answer) => {
      answer = press
    },
    removeEventListener: () => {},
  })
})
afterEach(() => vi.unstubAllGlobals())

/** Whether the page loses what is typed. */
function isTaken(key: string): boolean {
  const preventDefault = vi.fn()
  answer({ key, composedPath: () => [], preventDefault })
  return preventDefault.mock.calls.length > 0
}

test('what is typed for a field that is on its way is kept for it', () => {
  const stop = listen()
  expectField()
  expect(isTaken('a')).toBe(true)
  expect(takeTypedAhead()).toBe('a')
  expect(isTaken('b')).toBe(false)
  stop()
})

test('a field that never came takes nothing from the page that comes after the broken one', () => {
  const stop = listen()
  expectField()
  stop()
  const stopAgain = listen()
  expect(isTaken('a')).toBe(false)
  stopAgain()
})
