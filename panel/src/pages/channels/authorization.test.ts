import { expect, test } from 'vitest'
import { refusalOf, returnedIn } from './authorization'

test('the state leads back to the channel', () => {
  expect(returnedIn('?code=4%2F0A&state=7.12.ab_-9&scope=email')).toEqual({
    orgId: 7,
    id: 12,
    state: '7.12.ab_-9',
    code: '4/0A',
    error: null,
  })
  expect(returnedIn('?error=access_denied&state=7.12.x')).toMatchObject({
    code: null,
    error: 'access_denied',
  })
  for (const incomplete of ['', '?code=a', '?state=7.12.x', '?code=a&state=7.x', '?code=a&state=0.12.x']) {
    expect(returnedIn(incomplete)).toBeNull()
  }
})

test('a refusal is in words', () => {
  expect(refusalOf('access_denied')).toContain('nothing was connected')
  expect(refusalOf('server_error')).toBe('The other side refused: server_error')
})
