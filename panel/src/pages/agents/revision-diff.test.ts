import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { differences, labelOf, namesIn, valueText } from './revision-diff'

test('only what differs is listed, and a missing field is nothing', () => {
  const before = { name: 'Ada', language: null, approvalAskThreshold: 40, skills: [{ id: 1, version: 2 }] }
  const after = { name: 'Ada', approvalAskThreshold: 10, skills: [{ version: 2, id: 1 }], role: 'Support' }
  expect(differences(before, after)).toEqual([
    { field: 'approvalAskThreshold', label: 'Ask a person from a risk of', before: 40, after: 10 },
    { field: 'role', label: 'Role', before: null, after: 'Support' },
  ])
})

test('values and fields read as words', () => {
  expect(valueText(true)).toBe('Yes')
  expect(valueText(['a', 'b'])).toBe('a\nb')
  expect(valueText([])).toBeNull()
  expect(labelOf('mcp_http_bridge')).toBe('MCP http bridge')
})

test('records are shown by name, and deleted ones by number', () => {
  const names = {
    credentials: new Map([[1, 'Help desk']]),
    skills: new Map([[3, 'tone']]),
    servers: new Map([[7, 'node-7']]),
  }
  expect(namesIn('credentials', [1, 2], names)).toBe('Help desk\nNo. 2')
  expect(namesIn('skills', [{ id: 3, version: 2 }], names)).toBe('tone, version 2')
  expect(namesIn('serverId', 7, names)).toBe('node-7')
  expect(namesIn('mcpServers', [], names)).toBeNull()
  expect(labelOf('serverId')).toBe('Server')
})

test('a setting has the label of its form', () => {
  const folder = new URL('.', import.meta.url)
  const forms = readdirSync(folder).filter((name) => /^settings-.*\.tsx$/.test(name))
  const text = forms.map((name) => readFileSync(new URL(name, folder), 'utf8')).join('')
  const found = [...text.matchAll(/\bname="(\w+)"\s+label="([^"]+)"/g)]
  expect(found.length).toBeGreaterThan(30)
  for (const [, field = '', label = ''] of found)
    expect(labelOf(field).replace(/^[A-Z][\w ]+: /, ''), field).toBe(label)
})
