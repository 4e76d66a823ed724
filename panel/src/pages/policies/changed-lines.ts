// The lines that differ between two texts, marked as the service marks them (src/core/policy/diff.rs). No React here.

export interface ChangedLine {
  sign: '-' | '+'
  text: string
}

/** Comparing takes the product of both lengths, and 100,000 line breaks are allowed: beyond this, all lines in between differ. */
const MAX_COMPARISONS = 4_000_000

export function changedLines(before: string, after: string): ChangedLine[] {
  const [old, now] = [linesOf(before), linesOf(after)]
  let head = 0
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1
  let tail = 0
  const last = Math.min(old.length, now.length) - head
  while (tail < last && old.at(-1 - tail) === now.at(-1 - tail)) tail += 1
  const [removed, added] = [old.slice(head, old.length - tail), now.slice(head, now.length - tail)]
  const kept = removed.length * added.length > MAX_COMPARISONS ? [] : common(removed, added)
  const found: ChangedLine[] = []
  let [a, b] = [0, 0]
  for (const [atOld, atNow] of [...kept, [removed.length, added.length] as const]) {
    found.push(...removed.slice(a, atOld).map((text) => ({ sign: '-' as const, text })))
    found.push(...added.slice(b, atNow).map((text) => ({ sign: '+' as const, text })))
    ;[a, b] = [atOld + 1, atNow + 1]
  }
  return found
}

function linesOf(text: string): string[] {
  const lines = text.split(/\r?\n/)
  return lines.at(-1) === '' ? lines.slice(0, -1) : lines
}

/** The positions of a longest common subsequence. */
function common(old: string[], now: string[]): (readonly [number, number])[] {
  const width = now.length + 1
  const longest = new Uint32Array((old.length + 1) * width)
  const at = (a: number, b: number) => longest[a * width + b] ?? 0
  for (let a = old.length - 1; a >= 0; a -= 1) {
    for (let b = now.length - 1; b >= 0; b -= 1) {
      longest[a * width + b] = old[a] === now[b] ? at(a + 1, b + 1) + 1 : Math.max(at(a + 1, b), at(a, b + 1))
    }
  }
  const pairs: (readonly [number, number])[] = []
  let [a, b] = [0, 0]
  while (a < old.length && b < now.length) {
    if (old[a] === now[b]) {
      pairs.push([a, b])
      ;[a, b] = [a + 1, b + 1]
    } else if (at(a + 1, b) >= at(a, b + 1)) a += 1
    else b += 1
  }
  return pairs
}
