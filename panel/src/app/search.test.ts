import { expect, test } from 'vitest'
import { flag, id, one, parseSearch, searchOf, some, stringifySearch, text } from './search'

const read = searchOf({ status: some('OPEN', 'PENDING'), peek: id, tab: one('a', 'b'), q: text, mine: flag })

test('an address and its parameters are the same thing', () => {
  const search = {
    status: ['OPEN', 'PENDING'] as ('OPEN' | 'PENDING')[],
    peek: 7,
    tab: 'b' as const,
    q: '1 & 2',
    mine: true,
  }
  expect(stringifySearch(search)).toBe('?status=OPEN,PENDING&peek=7&tab=b&q=1+%26+2&mine=true')
  expect(read(parseSearch(stringifySearch(search)))).toEqual(search)
})

test('what is not understood is dropped', () => {
  expect(read(parseSearch('?status=GONE&peek=-1&tab=z&mine=maybe&other=1'))).toEqual({})
})
