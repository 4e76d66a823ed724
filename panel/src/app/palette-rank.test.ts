import { expect, test } from 'vitest'
import { ranked } from './palette-rank'

const action = (id: string, label: string, group = 'Go to') => ({ id, label, group })

test('case, accents and the order of words do not matter', () => {
  const isFound = (label: string, text: string) => ranked([action('a', label)], text).length === 1
  expect(isFound('Über das Konto', 'uber')).toBe(true)
  expect(isFound('Stop the agent', 'agent stop')).toBe(true)
  expect(isFound('Stop the agent', 'start')).toBe(false)
})

test('an action is found by other words for it, after those that are called so', () => {
  const found = ranked(
    [{ ...action('a', 'Switch between light and dark'), also: 'theme' }, action('b', 'Theme of mine')],
    'theme',
  )
  expect(found.map(({ id }) => id)).toEqual(['b', 'a'])
})

test('a label that begins with the words comes before one that holds them', () => {
  const found = ranked([action('a', 'Service tokens'), action('b', 'Tokens of mine')], 'tok')
  expect(found.map(({ id }) => id)).toEqual(['b', 'a'])
})

test('with nothing typed all are there once, groups together', () => {
  const found = ranked(
    [action('a', 'A', 'x'), action('b', 'B', 'y'), action('c', 'C', 'x'), action('a', 'A', 'x')],
    '',
  )
  expect(found.map(({ id }) => id)).toEqual(['a', 'c', 'b'])
})

test('among equals the pages come first, so that Enter changes nothing', () => {
  const actions = [action('a', 'Stop all agents', 'Organization'), action('b', 'Agents', 'Go to')]
  expect(ranked(actions, '').map(({ id }) => id)).toEqual(['b', 'a'])
  expect(ranked(actions, 'stop').map(({ id }) => id)).toEqual(['a'])
})

test('what the service finds stands in one group with the actions of its name, and a better match comes first', () => {
  const found = (id: string, label: string, group: string) => ({ ...action(id, label, group), isFound: true })
  const lines = [
    action('new', 'New agent', 'Agents'),
    action('docs', 'Documentation of Marlow', 'Help'),
    found('stop', 'Stop Marlow', 'Agents'),
    found('talk', 'Order 1004', 'Conversations'),
    found('marlow', 'Marlow', 'Agents'),
  ]
  expect(ranked(lines, 'marlow').map(({ id }) => id)).toEqual(['marlow', 'stop', 'docs', 'talk'])
  expect(ranked(lines, 'agent').map(({ id }) => id)).toEqual(['new', 'stop', 'marlow', 'talk'])
})
