import { expect, test } from 'vitest'
import { editsLike, nameOfCopy } from './duplicate'

test('a duplicate takes over what an edit sets, apart from the key', () => {
  const [rest, network, budget] = editsLike({
    ...{ __typename: 'Agent', id: 1, name: 'Ada', role: null, revision: 7, notEnforced: [] },
    ...{ hasModelCredential: true, modelCredentialProvider: 'openai', credentialChoice: 'OWN' },
    ...{ language: 'de', noEmoji: false, cpuOverride: null, approvalCategories: ['money'] },
    ...{ networkPrivileged: true, monthlyBudgetMicro: null, budgetAction: 'STOP' },
  })
  expect(rest?.input).toEqual({ language: 'de', noEmoji: false, approvalCategories: ['money'] })
  expect(network?.input).toEqual({ networkPrivileged: true })
  expect(budget?.input).toEqual({ budgetAction: 'STOP' })
  expect(editsLike({ credentialChoice: 'NONE' })[0]?.input).toEqual({ credentialChoice: 'NONE' })
})

test('the name of a duplicate keeps to the bound', () => {
  expect(nameOfCopy('Ada')).toBe('Ada copy')
  expect([...nameOfCopy('🛟'.repeat(80))].length).toBe(80)
})
