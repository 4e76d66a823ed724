import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { PERMISSIONS } from './names'

test('the panel knows the permissions that the policy names, and no others', () => {
  const policy = readFileSync('../policies/policy.csv', 'utf8')
  const named = policy
    .split('\n')
    .filter((line) => line.startsWith('p,'))
    .map((line) => line.split(',')[3]?.trim())
  expect([...PERMISSIONS].sort()).toEqual([...new Set(named)].sort())
})
