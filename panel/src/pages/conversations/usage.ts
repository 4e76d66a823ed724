// Formats a turn's usage. Pure, tested.

interface Tokens {
  inputTokens: string | null
  outputTokens: string | null
  cacheReadTokens: string | null
  cacheWriteTokens: string | null
}

/** "1,200 read, 300 written, 5,000 from a cache"; null if the agent did not report it. */
export function tokenWords({
  inputTokens,
  outputTokens,
  cacheReadTokens,
  cacheWriteTokens,
}: Tokens): string | null {
  const parts: [string | null, string][] = [
    [inputTokens, 'read'],
    [outputTokens, 'written'],
    [cacheReadTokens, 'from a cache'],
    [cacheWriteTokens, 'into a cache'],
  ]
  const known = parts.filter(([value], index) => value !== null && (index < 2 || Number(value) > 0))
  if (known.length === 0) return null
  return known.map(([value, what]) => `${Number(value).toLocaleString()} ${what}`).join(', ')
}
