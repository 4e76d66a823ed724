import { expect, test } from 'vitest'
import { refusalsOf } from '../../api/bounds'
import { CATALOGUE } from './catalogue'
import { TRANSPORTS, transportInput } from './transport'

test('each known server can be created as it is', () => {
  const names = CATALOGUE.map(({ name }) => name)
  expect(names).toEqual([...new Set(names)])
  for (const {
    name,
    description,
    transport,
    url = '',
    command = '',
    args = [],
    documentation,
  } of CATALOGUE) {
    expect(TRANSPORTS.map(({ value }) => value)).toContain(transport)
    const input = { name, description, ...transportInput(transport, url, command, args) }
    expect(refusalsOf('CreateMcpServerInput', input), name).toEqual({})
    expect(new URL(transport === 'STDIO' ? documentation : url).protocol, name).toBe('https:')
    expect(new URL(documentation).protocol, name).toBe('https:')
  }
})
