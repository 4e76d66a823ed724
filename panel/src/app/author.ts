// Names the author of an action; without a person or program it was Muster itself.

export function authorOf(kind: string, name: string | null): string {
  if (kind === 'SYSTEM') return 'Muster'
  return name ?? (kind === 'ANONYMOUS' ? 'Not signed in' : 'Someone')
}
