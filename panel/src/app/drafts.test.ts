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

let drafts: typeof import('./drafts')
beforeEach(async () => {
  vi.stubGlobal('localStorage', storage())
  vi.resetModules()
  drafts = await import('./drafts')
  drafts.setDraftsOwner(1)
})
afterEach(() => vi.unstubAllGlobals())

test('a draft survives a reload, only for the same person and organization', async () => {
  drafts.saveDraft(5, 'conversation.7', 'half a sentence')
  vi.resetModules()
  const reloaded = await import('./drafts')
  reloaded.setDraftsOwner(1)
  expect(reloaded.draftOf(5, 'conversation.7')).toBe('half a sentence')
  expect(reloaded.draftOf(6, 'conversation.7')).toBe('')
  expect(reloaded.draftOf(5, 'conversation.8')).toBe('')
})

test('another person who signs in finds nothing, and leaves nothing of the one before', () => {
  drafts.saveDraft(5, 'conversation.7', 'mine')
  drafts.setDraftsOwner(2)
  expect(drafts.draftOf(5, 'conversation.7')).toBe('')
  expect(Object.keys(localStorage)).toEqual([])
})

test('signing out forgets all of it, and nothing else', () => {
  localStorage.setItem('muster.organization', '5')
  drafts.saveDraft(5, 'conversation.7', 'mine')
  drafts.setDraftsOwner(drafts.SIGNED_OUT)
  expect(drafts.draftOf(5, 'conversation.7')).toBe('')
  expect(Object.keys(localStorage)).toEqual(['muster.organization'])
})

test('an empty text is forgotten', () => {
  drafts.saveDraft(5, 'conversation.7', 'mine')
  drafts.saveDraft(5, 'conversation.7', '')
  expect(Object.keys(localStorage)).toEqual([])
})

test('without storage it lasts as long as the page', () => {
  vi.stubGlobal('localStorage', undefined)
  drafts.saveDraft(5, 'conversation.7', 'mine')
  expect(drafts.draftOf(5, 'conversation.7')).toBe('mine')
})
