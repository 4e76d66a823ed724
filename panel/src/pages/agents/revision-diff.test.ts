import { expect, test } from 'vitest'
import { differences, labelOf, valueText } from './revision-diff'

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
