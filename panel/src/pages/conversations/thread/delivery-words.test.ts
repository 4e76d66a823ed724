import { expect, test } from 'vitest'
import { deliveryWords, isOff, type MessageDelivery } from './delivery-words'

const delivery = (known: Partial<MessageDelivery>): MessageDelivery => ({
  status: 'PENDING',
  code: null,
  error: null,
  sentAt: null,
  ...known,
})

test('what waits says why the last attempt failed', () => {
  expect(deliveryWords(delivery({})).said).toBe('Waits to be sent')
  const again = deliveryWords(delivery({ error: 'No answer.' }))
  expect([again.is, again.more]).toEqual(['waiting', 'No answer.'])
})

test('a failure says what it means and what the vendor said, and may be sent again', () => {
  const failed = deliveryWords(delivery({ status: 'FAILED', code: 'refused', error: '422: too rude' }))
  expect(failed).toMatchObject({ is: 'failed', canRetry: true })
  expect(failed.more).toBe('The other side refused the message. 422: too rude')
})

test('what came back is not sent again to the same address', () => {
  expect(deliveryWords(delivery({ status: 'FAILED', code: 'bounced' })).canRetry).toBe(false)
})

test('what was skipped is not sent, and did not fail', () => {
  expect(deliveryWords(delivery({ status: 'SKIPPED' })).is).toBe('unsent')
})

test('nothing is sent again through a channel that is off', () => {
  const channel = { id: 1, direction: 'BIDIRECTIONAL', isActive: false, inactiveReason: 'MANUAL' } as const
  expect(isOff(channel)).toBe(true)
  expect(isOff({ ...channel, inactiveReason: 'AUTH_FAILED' })).toBe(false)
  expect(isOff({ ...channel, isActive: true, inactiveReason: null })).toBe(false)
  expect(isOff({ ...channel, isActive: true, inactiveReason: null, direction: 'INBOUND' })).toBe(true)
  expect(isOff(null)).toBe(false)
  const failed = deliveryWords(delivery({ status: 'FAILED', code: 'gave_up' }), true)
  expect(failed.canRetry).toBe(false)
  expect(failed.more).toContain('The channel is off')
})
