import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { PALETTE } from './palette'
import { MOST } from './series'

const css = readFileSync('src/styles.css', 'utf8')
const canvas = ['\n:root {', ':root[data-theme="dark"]'].map(
  (selector) => /--canvas: (#\w{6})/.exec(css.slice(css.indexOf(selector)))?.[1] ?? '',
)

function luminance(hex: string): number {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map((at) => {
    const value = Number.parseInt(hex.slice(at, at + 2), 16) / 255
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * r + 0.7152 * g + 0.0722 * b
}

test('every series has a colour of its own that is seen in both themes', () => {
  expect(PALETTE).toHaveLength(MOST + 1)
  for (const theme of [0, 1] as const) {
    const weak = PALETTE.map((pair) => pair[theme]).filter((colour) => {
      const [low = 0, high = 0] = [luminance(colour), luminance(canvas[theme] ?? '')].sort((a, b) => a - b)
      return !((high + 0.05) / (low + 0.05) >= 3)
    })
    expect(weak).toEqual([])
    expect(new Set(PALETTE.map((pair) => pair[theme])).size).toBe(PALETTE.length)
  }
})
