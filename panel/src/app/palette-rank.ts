// Ranks the lines of the palette that match the typed text: one group per kind, the best match first. Pure, tested.

interface Ranked {
  id: string
  label: string
  group: string
  also?: string
  /** The service found it, perhaps by other words than its label's. */
  isFound?: boolean
}

/** Equal groups begin with this one, which changes nothing. */
export const GO_TO = 'Go to'

/** The lines that match by label or keywords, best first. Without text: all in their order, one per id, grouped. */
export function ranked<Line extends Ranked>(lines: Line[], text: string): Line[] {
  const seen = new Set<string>()
  const first = lines.filter(({ id }) => !seen.has(id) && seen.add(id))
  const scored = first.map((line) => ({
    line,
    points: Math.max(score(`${line.label} ${line.also ?? ''}`, text), line.isFound ? 1 : 0),
  }))
  const fit = scored.filter(({ points }) => points > 0)
  const best = new Map<string, number>()
  for (const { line, points } of fit) best.set(line.group, Math.max(points, best.get(line.group) ?? 0))
  const groups = [...best.keys()].sort(
    (a, b) => (best.get(b) ?? 0) - (best.get(a) ?? 0) || Number(b === GO_TO) - Number(a === GO_TO),
  )
  return groups.flatMap((group) =>
    fit
      .filter(({ line }) => line.group === group)
      .sort((a, b) => b.points - a.points)
      .map(({ line }) => line),
  )
}

function score(label: string, text: string): number {
  const plain = fold(label)
  const typed = fold(text).split(/\s+/).filter(Boolean)
  if (typed.length === 0) return 1
  if (plain.startsWith(typed.join(' '))) return 4
  const parts = plain.split(/[\s-]+/)
  if (typed.every((word) => parts.some((part) => part.startsWith(word)))) return 3
  return typed.every((word) => plain.includes(word)) ? 2 : 0
}

/** Ignores case and accents. */
function fold(text: string): string {
  return text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase().trim()
}
