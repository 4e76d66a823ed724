import { expect, test } from 'vitest'
import { differences, labelOf, namesIn, valueText } from './revision-diff'

test('only what differs is listed, and a missing field is nothing', () => {
  const before = { name: 'Ada', language: null, approval_ask_threshold: 40, skills: [{ id: 1, version: 2 }] }
  const after = { name: 'Ada', approval_ask_threshold: 10, skills: [{ version: 2, id: 1 }], role: 'Support' }
  expect(differences(before, after)).toEqual([
    { field: 'approval_ask_threshold', label: 'Approval ask threshold', before: 40, after: 10 },
    { field: 'role', label: 'Role', before: null, after: 'Support' },
  ])
})

test('values and fields read as words', () => {
  expect(valueText(true)).toBe('Yes')
  expect(valueText(['a', 'b'])).toBe('a\nb')
  expect(valueText([])).toBeNull()
  expect(labelOf('mcp_http_bridge')).toBe('MCP http bridge')
  expect(labelOf('modelOverride')).toBe('Model override')
  expect(labelOf('modeOverride')).toBe('Mode override')
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
