// The colours of series: told apart in both themes, also by the colour-blind, and 3:1 against the page (a test measures it).

/** Light and dark. The last one is that of the rest. */
export const PALETTE = [
  ['#4650c4', '#8a93ff'],
  ['#b5590a', '#f5a94f'],
  ['#0a7d76', '#3fc4b3'],
  ['#a62f7d', '#f285c4'],
  ['#6a7100', '#c9cf55'],
  ['#1f7ab8', '#6dbcf5'],
  ['#8a4b2f', '#d9a184'],
  ['#767683', '#9899a5'],
] as const

export const colourAt = (index: number): string => {
  const [light, dark] = PALETTE[index] ?? PALETTE[PALETTE.length - 1] ?? ['', '']
  return `light-dark(${light}, ${dark})`
}
