// A shortcut as labelled on the user's keyboard. Disabled shortcuts are not shown.
import { works } from '../keys/registry'

const MAC = /Mac|iPhone|iPad/.test(navigator.userAgent)
const NAMES: Record<string, string> = {
  mod: MAC ? '⌘' : 'Ctrl',
  shift: MAC ? '⇧' : 'Shift',
  alt: MAC ? '⌥' : 'Alt',
  enter: '↵',
  escape: 'Esc',
  space: 'Space',
  arrowup: '↑',
  arrowdown: '↓',
  arrowleft: '←',
  arrowright: '→',
}

/** `mod+shift+k` → `Ctrl Shift K`, `g a` → `G A`. */
export function keyNames(keys: string): string[] {
  return keys.split(/[+ ]/).map((key) => NAMES[key.toLowerCase()] ?? key.toUpperCase())
}

export function Kbd({ keys }: { keys: string }) {
  if (!works(keys)) return null
  return (
    <span className="inline-flex shrink-0 gap-0.5" role="img" aria-label={keyNames(keys).join(' ')}>
      {keyNames(keys).map((name) => (
        <kbd key={name} className="kbd" aria-hidden>
          {name}
        </kbd>
      ))}
    </span>
  )
}
