import { expect, test } from 'vitest'
import { firstExchange, progressOf } from './progress'
import type { FirstRun, StartTalk } from './start-page'

const talk = (id: number, role: 'USER' | 'ASSISTANT' = 'ASSISTANT', transport = 'INTERNAL') =>
  ({ id, agentId: 1, transport, lastMessage: { seq: 2, role } }) as StartTalk
const run = (mine: StartTalk[], all: StartTalk[]) =>
  progressOf({
    servers: null,
    agentFeed: { data: [{ id: 1, status: 'RUNNING' }] },
    conversationFeed: { data: all },
    mine: { data: mine },
  } as unknown as FirstRun)

test('the viewer’s own first answer is shown, else the team’s first one, and never a customer’s', () => {
  const all = [talk(9, 'ASSISTANT', 'EMAIL'), talk(8), talk(7), talk(5), talk(2, 'ASSISTANT', 'EMAIL')]
  expect(run([talk(8), talk(7)], all).answered?.id).toBe(7)
  expect(run([], all).answered?.id).toBe(5)
  expect(run([talk(8, 'USER')], all).answered?.id).toBe(5)
  expect(run([], [talk(9, 'ASSISTANT', 'EMAIL')]).answered).toBeUndefined()
})

test('a conversation is shown up to its first answer', () => {
  const said = (...roles: string[]) => roles.map((role) => ({ role }))
  const count = (...roles: string[]) => firstExchange(said(...roles)).length
  expect(count('USER', 'ASSISTANT', 'ASSISTANT', 'USER', 'ASSISTANT')).toBe(3)
  expect(count('USER', 'USER')).toBe(2)
  expect(count('USER', 'ASSISTANT')).toBe(2)
  expect(count()).toBe(0)
})
