import { type Client, CombinedError } from '@urql/core'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { makeSubject, type Subject } from 'wonka'
import { listen } from './listen'
import { sessionChanged, sessionEnded, signedIn } from './session'

type Answer = { data?: { n: number }; error?: CombinedError }
let begun: Subject<Answer>[]
let told: number[]
let refused: number
let stop: () => void

beforeEach(() => {
  vi.useFakeTimers()
  signedIn()
  begun = []
  told = []
  refused = 0
  const subscription = () => {
    const subject = makeSubject<Answer>()
    begun.push(subject)
    return subject.source
  }
  stop = listen(
    { subscription } as unknown as Client,
    {} as never,
    {},
    ({ n }: { n: number }) => told.push(n),
    () => {
      refused += 1
    },
  )
})
afterEach(() => {
  stop()
  vi.useRealTimers()
})

const says = (code: string) => ({
  error: new CombinedError({ graphQLErrors: [{ message: code, extensions: { code } }] }),
})

test('what the service ends begins again after a moment', async () => {
  begun[0]?.next({ data: { n: 1 } })
  begun[0]?.complete()
  await vi.advanceTimersByTimeAsync(4_999)
  expect(begun).toHaveLength(1)
  await vi.advanceTimersByTimeAsync(1)
  expect(begun).toHaveLength(2)
  begun[1]?.next(says('UNAVAILABLE'))
  begun[1]?.complete()
  await vi.advanceTimersByTimeAsync(5_000)
  begun[2]?.next({ data: { n: 2 } })
  expect(begun).toHaveLength(3)
  expect(told).toEqual([1, 2])
})

test('an answer with an error ends nothing', async () => {
  begun[0]?.next(says('CONFLICT'))
  begun[0]?.next(says('QUERY_TOO_COMPLEX'))
  begun[0]?.next({ data: { n: 1 } })
  await vi.advanceTimersByTimeAsync(60_000)
  expect(begun).toHaveLength(1)
  expect(told).toEqual([1])
})

test('a repeated answer with an error is reported once', () => {
  const data = { n: 1 }
  begun[0]?.next({ data })
  begun[0]?.next({ data, ...says('UNAVAILABLE') })
  expect(told).toEqual([1])
})

test('a refused subscription is retried once a minute while signed in', async () => {
  begun[0]?.next(says('NOT_A_MEMBER'))
  begun[0]?.complete()
  await vi.advanceTimersByTimeAsync(59_999)
  expect(begun).toHaveLength(1)
  await vi.advanceTimersByTimeAsync(1)
  expect(begun).toHaveLength(2)
  begun[1]?.next(says('NOT_A_MEMBER'))
  begun[1]?.complete()
  sessionEnded()
  await vi.advanceTimersByTimeAsync(120_000)
  expect(begun).toHaveLength(2)
  signedIn()
  expect(begun).toHaveLength(3)
})

test('a refusal is reported, also after data; an end is not', () => {
  begun[0]?.next(says('UNAVAILABLE'))
  const data = { n: 1 }
  begun[0]?.next({ data })
  expect(refused).toBe(0)
  begun[0]?.next({ data, ...says('SECOND_FACTOR_REQUIRED') })
  begun[0]?.complete()
  expect(refused).toBe(1)
})

test('what was refused is asked for again at once when the session may do more', () => {
  begun[0]?.next(says('SECOND_FACTOR_REQUIRED'))
  begun[0]?.complete()
  sessionChanged()
  expect(begun).toHaveLength(2)
})

test('a session that ended begins its subscriptions again with the next one', async () => {
  begun[0]?.next(says('UNAUTHENTICATED'))
  begun[0]?.complete()
  sessionEnded()
  await vi.advanceTimersByTimeAsync(60_000)
  expect(begun).toHaveLength(1)
  signedIn()
  expect(begun).toHaveLength(2)
})

test('nothing begins once it is not wanted', async () => {
  begun[0]?.complete()
  stop()
  await vi.advanceTimersByTimeAsync(60_000)
  expect(begun).toHaveLength(1)
})
