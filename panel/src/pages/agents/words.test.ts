import { expect, test } from 'vitest'
import { AFTER, detailOf, riskInWords, stateInWords, stepsOf } from './words'

test('a reason says more than the state, and a state alone is explained too', () => {
  expect(stateInWords('ERROR', 'OUT_OF_MEMORY').todo).toMatch(/more memory/)
  expect(stateInWords('STOPPED', null)).toEqual({
    what: 'The agent is not running. New work waits until the agent is started.',
    todo: null,
  })
  expect(stateInWords('ERROR', 'SOMETHING_NEW').what).toBe('The agent has failed.')
})

test('the detail of a failure repeats nothing that its reason says', () => {
  expect(detailOf('its program ended by itself (code 3)')).toEqual({ exit: 'Exit code 3', more: null })
  expect(detailOf('its program was killed (signal 9)\nlast words\n')).toEqual({
    exit: 'Signal 9',
    more: 'last words',
  })
  expect(detailOf('it ran out of memory').more).toBeNull()
  expect(detailOf('No space left')).toEqual({ exit: null, more: 'No space left' })
  expect(detailOf(null)).toEqual({ exit: null, more: null })
})

test('only the steps that the service allows are offered', () => {
  expect(stepsOf('STOPPED', null)).toEqual(['start'])
  expect(stepsOf('RUNNING', null)).toEqual(['pause', 'stop'])
  expect(stepsOf('PAUSED', null)).toEqual(['resume', 'stop'])
  expect(stepsOf('STOPPING', null)).toEqual([])
  expect(stepsOf('STOPPING', 'RESTARTING')).toEqual(['stop'])
  expect(stepsOf(AFTER.start, null)).toEqual(['stop'])
})

test('a threshold reads as what it does', () => {
  expect(riskInWords(0, 'ask')).toBe('Asks before every action.')
  expect(riskInWords(90, 'block')).toBe('Blocks actions if the risk is very high or higher.')
  expect(riskInWords(null, 'ask')).toMatch(/default/)
})
