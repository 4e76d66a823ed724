// Whether a text is safe to parse as Markdown. Anyone can write to an agent, and the parser takes quadratic time for
// some constructs: a text full of them would block the panel for minutes. Pure, tested.

const MAX_LENGTH = 100_000

/** The maximum number of each construct. */
const LIMITS: [what: RegExp, most: number][] = [
  // Markers.
  [/[*_~[`]/g, 2_000],
  // HTML whose end is searched for in the whole text: comments, instructions, declarations.
  [/<[!?]/g, 100],
]

/** Quotes and lists nested within one line: at each level the parser copies all outer ones. */
const NESTED = /^(?:[ \t]*(?:>|(?:[-+*]|\d{1,9}[.)])[ \t])){50}/m

export const isParsable = (text: string): boolean =>
  text.length <= MAX_LENGTH &&
  !NESTED.test(text) &&
  LIMITS.every(([what, most]) => (text.match(what)?.length ?? 0) <= most)
