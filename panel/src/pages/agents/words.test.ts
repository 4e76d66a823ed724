import { expect, test } from 'vitest'
import { AFTER, costOf, riskInWords, stateInWords, stepsOf } from './words'

test('a reason says more than the state, and a state alone is explained too', () => {
  expect(stateInWords('ERROR', 'OUT_OF_MEMORY').todo).toMatch(/more memory/)
  expect(stateInWords('STOPPED', null)).toEqual({
    what: 'It is not running. New work waits until it is started.',
    todo: null,
  })
  expect(stateInWords('ERROR', 'SOMETHING_NEW').what).toBe('It has failed.')
})

test('only the steps that the service allows are offered', () => {
  expect(stepsOf('STOPPED', null)).toEqual(['start'])
  expect(stepsOf('RUNNING', null)).toEqual(['pause', 'stop'])
  expect(stepsOf('PAUSED', null)).toEqual(['resume', 'stop'])
  expect(stepsOf('STOPPING', null)).toEqual([])
  expect(stepsOf('STOPPING', 'RESTARTING')).toEqual(['stop'])
  expect(stepsOf(AFTER.start, null)).toEqual(['stop'])
})

test('a cost is a number, and an unknown one is not zero', () => {
  expect(costOf(null)).toBeNull()
  expect(Number(costOf('12300'))).toBeCloseTo(0.0123)
  expect(costOf('0')).toMatch(/^0[.,]00$/)
})

test('a threshold reads as what it does', () => {
  expect(riskInWords(0, 'ask')).toBe('Asks before every action.')
  expect(riskInWords(90, 'block')).toBe('From a very high risk on it is blocked.')
  expect(riskInWords(null, 'ask')).toMatch(/default/)
})
