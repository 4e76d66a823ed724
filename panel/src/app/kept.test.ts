import { afterEach, beforeEach, expect, test, vi } from 'vitest'

/** As much of a browser's storage as is used: its keys are its own properties. */
function storage(): Record<string, unknown> {
  const methods = {
    getItem(this: Record<string, unknown>, key: string) {
      return Object.hasOwn(this, key) ? this[key] : null
    },
    setItem(this: Record<string, unknown>, key: string, value: string) {
      this[key] = value
    },
    removeItem(this: Record<string, unknown>, key: string) {
      delete this[key]
    },
  }
  return Object.create(methods)
}

let kept: typeof import('./kept')
beforeEach(async () => {
  vi.stubGlobal('localStorage', storage())
  vi.resetModules()
  kept = await import('./kept')
  kept.keepFor(1)
})
afterEach(() => vi.unstubAllGlobals())

test('what is kept is there after a reload, for the same person and organization alone', async () => {
  kept.keep(5, 'conversation.7', 'half a sentence')
  vi.resetModules()
  const reloaded = await import('./kept')
  reloaded.keepFor(1)
  expect(reloaded.keptOf(5, 'conversation.7')).toBe('half a sentence')
  expect(reloaded.keptOf(6, 'conversation.7')).toBe('')
  expect(reloaded.keptOf(5, 'conversation.8')).toBe('')
})

test('somebody else who signs in finds nothing, and leaves nothing of the one before', () => {
  kept.keep(5, 'conversation.7', 'mine')
  kept.keepFor(2)
  expect(kept.keptOf(5, 'conversation.7')).toBe('')
  expect(Object.keys(localStorage)).toEqual([])
})

test('signing out forgets all of it, and nothing else', () => {
  localStorage.setItem('muster.organization', '5')
  kept.keep(5, 'conversation.7', 'mine')
  kept.keepFor(kept.NOBODY)
  expect(kept.keptOf(5, 'conversation.7')).toBe('')
  expect(Object.keys(localStorage)).toEqual(['muster.organization'])
})

test('an empty text is forgotten', () => {
  kept.keep(5, 'conversation.7', 'mine')
  kept.keep(5, 'conversation.7', '')
  expect(Object.keys(localStorage)).toEqual([])
})

test('without storage it lasts as long as the page', () => {
  vi.stubGlobal('localStorage', undefined)
  kept.keep(5, 'conversation.7', 'mine')
  expect(kept.keptOf(5, 'conversation.7')).toBe('mine')
})
