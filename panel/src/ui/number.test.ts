import { expect, test } from 'vitest'
import { format, parse } from './number'

test('a number is read as the panel shows it', () => {
  for (const locale of ['en', 'de', 'fr', 'de-CH']) {
    const group = new Intl.NumberFormat(locale).formatToParts(1e6).find(({ type }) => type === 'group')?.value
    for (const number of [1, 999, 1_000, 100_000, 12_345_678, -2_500, 1_234.5, 0.125])
      expect(parse(number.toLocaleString(locale).replace('−', '-'), group), `${number} in ${locale}`).toBe(
        number,
      )
  }
})

test('a comma or a point that makes no group begins the decimals', () => {
  expect(parse('12.50', ',')).toBe(12.5)
  expect(parse('12,5', ',')).toBe(12.5)
  expect(parse('0,125', ',')).toBe(0.125)
  expect(parse('1.500', ',')).toBe(1.5)
  expect(parse('1,500', '.')).toBe(1.5)
  expect(parse('1500,25', '.')).toBe(1500.25)
})

test('an empty field is null, and text that is not a number is not guessed at', () => {
  expect(parse('  ', ',')).toBe(null)
  for (const text of ['ten', '1e5', '1,00,000', '1,000,00', '1,000.', '01,000.000.0', '1 000', '.5', '--1'])
    expect(parse(text, ','), text).toBeNaN()
})

test('what a field shows is read as the same number', () => {
  for (const group of [',', '.', ' '])
    for (const number of [1.125, -0.5, 1500, 2.75])
      expect(parse(format(number, group), group), group).toBe(number)
})
