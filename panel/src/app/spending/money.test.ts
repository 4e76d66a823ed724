import { expect, test } from 'vitest'
import { amountOf, costOf, microOf, moneyOf } from './money'

test('amounts are cents, and what is less than one keeps its digits', () => {
  expect(moneyOf('12500000', 'USD')).toBe('12.50 USD')
  expect(moneyOf('500000', 'USD')).toBe('0.50 USD')
  expect(moneyOf('1234', 'EUR')).toBe('0.0012 EUR')
  expect(moneyOf(0, 'USD')).toBe('0.00 USD')
})

test('costs of turns have the same digits, and an unknown one is not zero', () => {
  expect(costOf(null, 'USD')).toBeNull()
  expect(costOf('4000', 'USD')).toBe('0.0040 USD')
  expect(costOf('1500000', 'EUR')).toBe('1.5000 EUR')
  expect(costOf('0', 'USD')).toBe('0.0000 USD')
})

test('what is typed becomes millionths, without the errors of binary fractions', () => {
  expect(microOf(0.29)).toBe(290_000)
  expect(microOf(1.1)).toBe(1_100_000)
  expect(microOf(null)).toBeNull()
  expect(amountOf(290_000)).toBe(0.29)
})

test('zero and less are not amounts', () => {
  expect(microOf(0)).toBeNaN()
  expect(microOf(-5)).toBeNaN()
})
