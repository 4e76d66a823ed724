// Several tokens as one secret, with a space between them. Pure, tested with values.ts.

export interface SecretPart {
  label: string
  hint: string
}

export const partsOf = (text: string, count: number): string[] =>
  Array.from({ length: count }, (_, at) => text.split(' ')[at] ?? '')

/** Empty if all parts are. */
export function joined(parts: string[]): string {
  const given = parts.map((part) => part.replaceAll(/\s/g, ''))
  return given.some((part) => part !== '') ? given.join(' ') : ''
}
