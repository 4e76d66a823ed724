import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const css = readFileSync('src/styles.css', 'utf8')
const tokens = (selector: string) => {
  const block = css.slice(css.indexOf(selector)).split('}')[0] ?? ''
  return Object.fromEntries(
    [...block.matchAll(/--([a-z-]+): (#[0-9a-f]{6});/g)].map(([, name, value]) => [name, value]),
  )
}
const themes = { light: tokens(':root {'), dark: tokens(':root[data-theme="dark"] {') }

function luminance(hex: string): number {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const value = Number.parseInt(hex.slice(at, at + 2), 16) / 255
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  }) as [number, number, number]
  return 0.2126 * r + 0.7152 * g + 0.0722 * b
}

function contrast(a = '', b = ''): number {
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x) as [number, number]
  return (high + 0.05) / (low + 0.05)
}

const GROUNDS = ['canvas', 'sunken', 'raised', 'hover', 'selected']

for (const [theme, colours] of Object.entries(themes)) {
  test(`every text can be read on every ground in the ${theme} theme`, () => {
    const pairs = [
      ...['ink', 'muted', 'faint', 'accent-text', 'danger-text'].flatMap((text) =>
        GROUNDS.map((ground) => [text, ground]),
      ),
      ['muted', 'line'],
      ...['danger', 'warn', 'ok', 'info', 'accent'].map((tone) => [`${tone}-text`, `${tone}-soft`]),
      ...['accent', 'accent-hover'].map((ground) => ['on-accent', ground]),
      ...['danger', 'danger-hover'].map((ground) => ['on-danger', ground]),
    ] as [string, string][]
    const weak = pairs
      .map(([text, ground]) => [`${text} on ${ground}`, contrast(colours[text], colours[ground])] as const)
      .filter(([, ratio]) => !(ratio >= 4.5))
    expect(weak).toEqual([])
  })

  test(`the outlines of controls are seen in the ${theme} theme`, () => {
    const weak = ['canvas', 'sunken', 'raised'].filter(
      (ground) => !(contrast(colours.outline, colours[ground]) >= 3),
    )
    expect(weak).toEqual([])
  })
}
