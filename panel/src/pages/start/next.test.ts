import { expect, test } from 'vitest'
import { nextSteps } from './next'

const none = {
  isOfDemo: false,
  hasModelCredential: false,
  hasAssignedSkill: false,
  hasApprovalRules: false,
  hasChannel: false,
  hasOthers: false,
}

test('each step leads to where it is done, and is done only by its own fact', () => {
  const steps = nextSteps({ ...none, hasChannel: true }, 7, 3)
  expect(steps.map(({ id }) => id)).toEqual(['key', 'skill', 'ask', 'channel', 'invite'])
  expect(steps.filter(({ isDone }) => isDone).map(({ id }) => id)).toEqual(['channel'])
  expect(steps[2]?.link).toEqual({
    to: '/o/$org/agents/$id',
    search: { tab: 'settings' },
    params: { org: 7, id: 3 },
  })
})

test('what is done is shown instead of made again', () => {
  const ofChannel = (hasChannel: boolean) => nextSteps({ ...none, hasChannel }, 7, 3)[3]?.link.search
  expect(ofChannel(false)).toEqual({ open: 'new' })
  expect(ofChannel(true)).toEqual({})
})

test('the demo’s agent has a model once it has another than its rules', () => {
  const key = (isOfDemo: boolean) =>
    nextSteps({ ...none, isOfDemo, hasModelCredential: true }, 7, 3)[0] ?? expect.unreachable()
  expect([key(true).isDone, key(false).isDone]).toEqual([false, true])
  expect([key(true).link.to, key(false).link.to]).toEqual(['/o/$org/agents/$id', '/o/$org/settings'])
})
