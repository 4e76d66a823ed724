// Who did something, in words. What no person or program did, Muster did by itself.

export function authorOf(kind: string, name: string | null): string {
  if (kind === 'SYSTEM') return 'Muster'
  return name ?? (kind === 'ANONYMOUS' ? 'Not signed in' : 'Someone')
}
