import { expect, test } from 'vitest'
import { type Streams, withDelta, without } from './streams'

const NONE: Streams = new Map()
const piece = (offset: number, text: string) => ({ message: 'm1', offset, text, thinking: false })

test('pieces are put together by bytes, not by characters', () => {
  const streams = withDelta(withDelta(NONE, piece(0, 'Grüße')), piece(7, ' an alle'))
  expect(streams.get('m1')).toMatchObject({ text: 'Grüße an alle', isBroken: false })
})

test('a piece that comes twice counts once', () => {
  const streams = withDelta(withDelta(NONE, piece(0, 'ab')), piece(0, 'ab'))
  expect(streams.get('m1')?.text).toBe('ab')
})

test('after a missing piece nothing is made up', () => {
  const streams = withDelta(withDelta(withDelta(NONE, piece(0, 'ab')), piece(5, 'x')), piece(2, 'c'))
  expect(streams.get('m1')).toMatchObject({ text: 'ab', isBroken: true })
})

test('a reader who joins late waits for the whole message', () => {
  expect(withDelta(NONE, piece(10, 'late')).get('m1')).toMatchObject({ text: '', isBroken: true })
})

test('the message takes the place of its stream', () => {
  const streams = withDelta(NONE, piece(0, 'ab'))
  expect(without(streams, [null, 'm1']).size).toBe(0)
  expect(without(streams, ['other'])).toBe(streams)
})
