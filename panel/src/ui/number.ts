// Parses numbers as people type them and as the panel formats them: `100,000`. No React, tested.

/** The digit group separator of this locale. */
const GROUP = new Intl.NumberFormat().formatToParts(1e6).find(({ type }) => type === 'group')?.value

/** Null: empty. NaN: not a number. A comma or point that does not separate groups starts the decimals. */
export function parse(text: string, group = GROUP ?? ','): number | null {
  const typed = text.trim()
  if (typed === '') return null
  // Groups are displayed with a narrow space; any space may be typed.
  const gap = group.trim() === '' ? '\\s' : `[${group}]`
  const isGrouped = new RegExp(`^-?[1-9]\\d{0,2}(${gap}\\d{3})+((?!${gap})[.,]\\d+)?$`).test(typed)
  const plain = isGrouped ? typed.replace(new RegExp(gap, 'g'), '') : typed
  return /^-?\d+([.,]\d+)?$/.test(plain) ? Number(plain.replace(',', '.')) : Number.NaN
}

/** A number in editable form: with points as group separators, `1.125` would be read as more than a thousand. */
export const format = (number: number, group = GROUP ?? ','): string =>
  group === '.' ? String(number).replace('.', ',') : String(number)
