import { expect, test } from 'vitest'
import { bufferUpdates } from './update-buffer'

interface Message {
  seq: number
  delivery: string
}
const waits = (...seqs: number[]) => ({
  data: seqs.map((seq) => ({ seq, delivery: 'waits' })),
  hasAfter: false,
})

test('an update during a read is not undone by it', async () => {
  const { receive, over } = bufferUpdates<Message>()
  let answer = (_: ReturnType<typeof waits> | null) => {}
  const read = over(new Promise<ReturnType<typeof waits> | null>((done) => (answer = done)))
  receive({ seq: 2, delivery: 'failed' })
  // One that the page does not have is the window's concern.
  receive({ seq: 9, delivery: 'sent' })
  answer(waits(1, 2))
  expect(await read).toEqual({
    data: [
      { seq: 1, delivery: 'waits' },
      { seq: 2, delivery: 'failed' },
    ],
    hasAfter: false,
  })
})

test('an earlier update does not change a later page, and a failed read is empty', async () => {
  const { receive, over } = bufferUpdates<Message>()
  expect(await over(Promise.resolve(null))).toBe(null)
  receive({ seq: 1, delivery: 'failed' })
  expect(await over(Promise.resolve(waits(1)))).toEqual(waits(1))
})
