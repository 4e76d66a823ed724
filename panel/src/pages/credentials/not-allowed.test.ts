import { expect, test } from 'vitest'
import { notAllowed } from './not-allowed'

test('addresses whose host and port are not on the list are found', () => {
  const list = [
    { host: 'api.example.com', port: 443 },
    { host: '*.example.org', port: 8080 },
  ]
  const of = (...addresses: string[]) =>
    notAllowed(addresses, list).map(({ host, port }) => `${host}:${port}`)
  expect(of('https://API.example.com/v1', 'http://a.b.example.org:8080')).toEqual([])
  expect(of('http://api.example.com', 'https://example.org:8080')).toEqual([
    'api.example.com:80',
    'example.org:8080',
  ])
  expect(of('https://b\u{fc}cher.example')).toEqual(['xn--bcher-kva.example:443'])
  // What no server adds to requests.
  expect(of('db.example.net', 'mcp://tools', 'postgres://db.example.net')).toEqual([])
})
