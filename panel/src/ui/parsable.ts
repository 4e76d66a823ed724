// Whether a text may be parsed as markdown. Anyone can write to an agent, and the parser's time grows with the square of some
// things: a text with very many of them would keep the panel busy for minutes. Pure, tested.

const LONGEST = 100_000

/** How many there may be. */
const MOST: [what: RegExp, most: number][] = [
  // Marks.
  [/[*_~[`]/g, 2_000],
  // HTML whose end is looked for through all of the text: comments, instructions, declarations.
  [/<[!?]/g, 100],
]

/** Quotes and lists within each other, in one line: for each, the parser copies those that it is in. */
const NESTED = /^(?:[ \t]*(?:>|(?:[-+*]|\d{1,9}[.)])[ \t])){50}/m

export const isParsable = (text: string): boolean =>
  text.length <= LONGEST &&
  !NESTED.test(text) &&
  MOST.every(([what, most]) => (text.match(what)?.length ?? 0) <= most)
