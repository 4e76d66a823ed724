import { expect, test } from 'vitest'
import { rolesUpTo } from './roles'

test('no one gives a role above their own', () => {
  expect(rolesUpTo('OWNER')).toEqual(['OWNER', 'ADMIN', 'OPERATOR', 'VIEWER'])
  expect(rolesUpTo('OPERATOR')).toEqual(['OPERATOR', 'VIEWER'])
  expect(rolesUpTo(null)).toEqual([])
})
