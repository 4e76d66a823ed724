// biome-ignore-all lint/suspicious/noControlCharactersInRegex: it looks for them
// biome-ignore-all lint/suspicious/noMisleadingCharacterClass: each is matched on its own
// Finds characters that hide, reorder or imitate text: what a person approves must be what runs. Pure, tested.

export interface Part {
  text: string
  /** Describes a hidden character: `U+202E right-to-left override`. */
  hidden?: string
}

const NAMES: Record<number, string> = {
  0: 'null',
  8: 'backspace',
  13: 'carriage return',
  27: 'escape',
  127: 'delete',
  160: 'no-break space',
  173: 'soft hyphen',
  847: 'grapheme joiner',
  1564: 'Arabic letter mark',
  4447: 'Hangul filler',
  4448: 'Hangul filler',
  6158: 'Mongolian vowel separator',
  8203: 'zero-width space',
  8204: 'zero-width non-joiner',
  8205: 'zero-width joiner',
  8206: 'left-to-right mark',
  8207: 'right-to-left mark',
  8232: 'line separator',
  8233: 'paragraph separator',
  8234: 'left-to-right embedding',
  8235: 'right-to-left embedding',
  8236: 'pop directional formatting',
  8237: 'left-to-right override',
  8238: 'right-to-left override',
  8288: 'word joiner',
  8294: 'left-to-right isolate',
  8295: 'right-to-left isolate',
  8296: 'first strong isolate',
  8297: 'pop directional isolate',
  12644: 'Hangul filler',
  65279: 'byte order mark',
  65440: 'Hangul filler',
}

// Controls except tab and line feed; formats (Cf: bidi, zero-width); odd spaces; private use; lone surrogates.
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u00a0\u034f\u115f\u1160\u2000-\u200a\u2028\u2029\u202f\u205f\u2800\u3000\u3164\uffa0]|\p{Cf}|\p{Co}|\p{Cs}|[\u{e0100}-\u{e01ef}]/gu
// Joiners in a composite emoji hide nothing.
const EMOJI_JOINER =
  /(?<=[\p{Extended_Pictographic}\ufe0f\u{1f3fb}-\u{1f3ff}])\u200d(?=\p{Extended_Pictographic})/u

export function partsOf(text: string): Part[] {
  const parts: Part[] = []
  let from = 0
  for (const match of text.matchAll(HIDDEN)) {
    const at = match.index
    const around = text.slice(Math.max(0, at - 2), at + 3)
    if (match[0] === '\u200d' && EMOJI_JOINER.test(around)) continue
    // Windows line endings are fine.
    if (match[0] === '\r' && text[at + 1] === '\n') continue
    if (at > from) parts.push({ text: text.slice(from, at) })
    parts.push({ text: match[0], hidden: nameOf(match[0].codePointAt(0) ?? 0) })
    from = at + match[0].length
  }
  if (from < text.length) parts.push({ text: text.slice(from) })
  return parts
}

/** The number of hidden characters in a text. */
export function hiddenCount(text: string): number {
  return partsOf(text).filter(({ hidden }) => hidden).length
}

function nameOf(code: number): string {
  const point = `U+${code.toString(16).toUpperCase().padStart(4, '0')}`
  if (NAMES[code]) return `${point} ${NAMES[code]}`
  if (code < 0x20 || (code >= 0x80 && code < 0xa0)) return `${point} control character`
  if (code >= 0xe0000 && code <= 0xe007f) return `${point} hidden tag`
  if (code >= 0xe0100 && code <= 0xe01ef) return `${point} variation selector`
  if (code >= 0xd800 && code <= 0xdfff) return `${point} half a character`
  if (code >= 0xe000) return `${point} private character`
  return `${point} invisible character`
}
