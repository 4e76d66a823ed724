// Parses shortcuts. Pure, tested. Combinations are written `a`, `shift+a`, `mod+k`, `mod+enter`; sequences `g a`.

export interface Pressed {
  key: string
  ctrlKey: boolean
  metaKey: boolean
  shiftKey: boolean
  altKey: boolean
}

/** A pressed key in the registry's notation. */
export function nameOf({ key, ctrlKey, metaKey, shiftKey, altKey }: Pressed): string {
  const name = key === ' ' ? 'space' : key.toLowerCase()
  const parts: string[] = []
  if (ctrlKey || metaKey) parts.push('mod')
  if (altKey) parts.push('alt')
  // `?` needs shift on most keyboards and is written without it; letters and named keys keep it.
  if (shiftKey && (/^[a-z]$/.test(name) || name.length > 1)) parts.push('shift')
  return [...parts, name].join('+')
}

/**
 * Whether a shortcut consists of characters only: a letter or sign, also with shift, or a sequence. `shift` is not a
 * modifier in this sense.
 */
export function isSingle(keys: string): boolean {
  return keys.split(' ').every((step) => step.replace(/^shift\+/, '').length === 1)
}

/** How far a sequence has matched: `no`, `part` or `full`. */
export function progress(typed: string[], wanted: string): 'no' | 'part' | 'full' {
  const steps = wanted.toLowerCase().split(' ')
  if (typed.length > steps.length || typed.some((key, index) => key !== steps[index])) return 'no'
  return typed.length === steps.length ? 'full' : 'part'
}

/** Whether the focused field handles a key. With mod it is a command, except for text editing. */
export function belongsToField(pressed: Pressed, isField: boolean): boolean {
  if (!isField) return false
  const name = nameOf(pressed)
  if (!name.startsWith('mod+')) return true
  return /^mod\+(shift\+)?(a|c|v|x|z|y|b|i|arrow(left|right|up|down)|backspace|delete|home|end)$/.test(name)
}
