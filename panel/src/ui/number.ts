// Reads a number as people type it, and as the panel shows it: `100,000`. No React here, tested.

/** What stands between groups of three digits where the panel shows a number. */
const GROUP = new Intl.NumberFormat().formatToParts(1e6).find(({ type }) => type === 'group')?.value

/** Null: nothing was typed. NaN: something that isn't a number. Where a comma or a point makes no group, it begins the decimals. */
export function parse(text: string, group = GROUP ?? ','): number | null {
  const typed = text.trim()
  if (typed === '') return null
  // A space between groups is a narrow one where it is shown, and any where it is typed.
  const gap = group.trim() === '' ? '\\s' : `[${group}]`
  const isGrouped = new RegExp(`^-?[1-9]\\d{0,2}(${gap}\\d{3})+((?!${gap})[.,]\\d+)?$`).test(typed)
  const plain = isGrouped ? typed.replace(new RegExp(gap, 'g'), '') : typed
  return /^-?\d+([.,]\d+)?$/.test(plain) ? Number(plain.replace(',', '.')) : Number.NaN
}

/** A number as it is typed: where a point stands between groups, `1.125` would be read as more than a thousand. */
export const written = (number: number, group = GROUP ?? ','): string =>
  group === '.' ? String(number).replace('.', ',') : String(number)
