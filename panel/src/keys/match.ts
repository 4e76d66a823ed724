// What keys mean. Pure, tested. Combinations are written `a`, `shift+a`, `mod+k`, `mod+enter`; sequences `g a`.

export interface Pressed {
  key: string
  ctrlKey: boolean
  metaKey: boolean
  shiftKey: boolean
  altKey: boolean
}

/** A pressed key as it is written in the registry. */
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
 * Whether keys are characters by themselves: a letter or a sign, also with shift, or several one after the other. `shift`
 * alone does not make a command of them.
 */
export function isSingle(keys: string): boolean {
  return keys.split(' ').every((step) => step.replace(/^shift\+/, '').length === 1)
}

/** How far a sequence has got: `no`, `part` of one, or `full`. */
export function progress(typed: string[], wanted: string): 'no' | 'part' | 'full' {
  const steps = wanted.toLowerCase().split(' ')
  if (typed.length > steps.length || typed.some((key, index) => key !== steps[index])) return 'no'
  return typed.length === steps.length ? 'full' : 'part'
}

/** Whether a key belongs to the field that has the focus. With mod it is a command, but for what edits text. */
export function belongsToField(pressed: Pressed, isField: boolean): boolean {
  if (!isField) return false
  const name = nameOf(pressed)
  if (!name.startsWith('mod+')) return true
  return /^mod\+(shift\+)?(a|c|v|x|z|y|b|i|arrow(left|right|up|down)|backspace|delete|home|end)$/.test(name)
}
