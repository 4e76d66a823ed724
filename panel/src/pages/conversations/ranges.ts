// Splits a text into matching and other parts. Positions count characters, not UTF-16 units. Pure, tested.
import { withoutCode } from '../../app/conversation-title'

export interface Part {
  text: string
  isHit: boolean
  from: number
}

export function rangesOf(text: string, ranges: readonly (readonly number[])[]): Part[] {
  const characters = [...text]
  const parts: Part[] = []
  let at = 0
  const add = (to: number, isHit: boolean) => {
    if (to > at) parts.push({ text: characters.slice(at, to).join(''), isHit, from: at })
    at = Math.max(at, to)
  }
  for (const [from = 0, to = 0] of [...ranges].sort((a, b) => (a[0] ?? 0) - (b[0] ?? 0))) {
    add(Math.min(from, characters.length), false)
    add(Math.min(to, characters.length), true)
  }
  add(characters.length, false)
  return parts
}

/** A snippet without its code, and its matches. Codes are ASCII: a character is a unit. */
export function snippetWithoutCode(kind: string, text: string, ranges: readonly (readonly number[])[]) {
  const shown = withoutCode(kind, text)
  const by = kind === 'ERROR' ? text.length - shown.length : 0
  return {
    text: shown,
    ranges:
      by === 0
        ? ranges
        : ranges.flatMap(([from = 0, to = 0]) => (to > by ? [[Math.max(0, from - by), to - by]] : [])),
  }
}
