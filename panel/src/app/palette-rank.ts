// Ranks the actions that match the typed text. Pure, tested.

interface Ranked {
  id: string
  label: string
  group: string
  also?: string
}

/** Equal groups begin with this one, which changes nothing. */
export const GO_TO = 'Go to'

/** The actions that match by label or keywords, best first. Without text: all in their order, one per id, grouped. */
export function ranked<A extends Ranked>(actions: A[], text: string): A[] {
  const seen = new Set<string>()
  const first = actions.filter(({ id }) => !seen.has(id) && seen.add(id))
  const scored = first.map((action) => ({
    action,
    points: score(`${action.label} ${action.also ?? ''}`, text),
  }))
  const fit = scored.filter(({ points }) => points > 0)
  const best = new Map<string, number>()
  for (const { action, points } of fit) best.set(action.group, Math.max(points, best.get(action.group) ?? 0))
  const groups = [...best.keys()].sort(
    (a, b) => (best.get(b) ?? 0) - (best.get(a) ?? 0) || Number(b === GO_TO) - Number(a === GO_TO),
  )
  return groups.flatMap((group) =>
    fit
      .filter(({ action }) => action.group === group)
      .sort((a, b) => b.points - a.points)
      .map(({ action }) => action),
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
