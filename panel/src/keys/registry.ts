// The registry of available actions. It handles keys, fills the palette and the `?` dialog, and supplies tooltips with
// shortcuts. No React here; components register with keys/use-actions.
import { belongsToField, isSingle, nameOf, progress } from './match'

export interface Action {
  /** Unique: `approvals.approve`. */
  id: string
  /** A verb, with its object if needed: "Approve". */
  label: string
  /** The group heading in the dialog and the palette: "Approval", "Go to". */
  group: string
  /** `a`, `mod+enter`, `g a`. Several are alternatives. */
  keys?: string | string[]
  run: () => void
  /** Set if the user lacks the permission: explains why instead of running. */
  refused?: (() => void) | null
  /** Works, but is not shown in the palette, such as moving in a list. */
  hidden?: boolean
  /** Search keywords. */
  also?: string
}

/** How long a sequence waits for its next key. */
const SEQUENCE_MS = 1200

let actions: Action[] = []
let typed: string[] = []
/** When the last key was pressed; a busy page handles it much later. */
let typedAt = 0
/** Text typed for a field that is still loading; null if none is. */
let ahead: string | null = null
const escapes: (() => void)[] = []
const listeners = new Set<() => void>()
/** Off until the user and their preference are known. */
let singleKeys = false

export const actionsNow = () => actions

export function onActions(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** The last registered comes first: a peek's shortcuts override its page's. */
export function register(added: Action[]): () => void {
  set([...added, ...actions])
  return () => set(actions.filter((action) => !added.includes(action)))
}

/** Handlers for Esc; the last registered runs first. */
export function registerEscape(run: () => void): () => void {
  escapes.push(run)
  return () => {
    const at = escapes.lastIndexOf(run)
    if (at >= 0) escapes.splice(at, 1)
  }
}

/**
 * Turns single-character shortcuts on or off: people who use speech input or hit keys by mistake would trigger them
 * (WCAG 2.1.4). A switch is the simplest permitted way: the actions remain in the palette, which needs a modifier, or
 * on the page. Configurable shortcuts would have to avoid those of browsers and screen readers.
 */
export function setSingleKeys(on: boolean): void {
  if (on === singleKeys) return
  singleKeys = on
  set([...actions])
}

export const singleKeysNow = () => singleKeys

/** Whether this shortcut is enabled for the user. */
export const works = (keys: string): boolean => singleKeys || !isSingle(keys)

/** The enabled shortcuts of an action. */
export const keysOf = ({ keys = [] }: Pick<Action, 'keys'>): string[] => [keys].flat().filter(works)

/** A field was requested and may have to load: text typed meanwhile belongs to it, not to the page. */
export function expectField(): void {
  ahead ??= ''
}

/** The field is ready or no longer wanted. Returns the text typed meanwhile. */
export function takeTypedAhead(): string {
  const text = ahead ?? ''
  ahead = null
  return text
}

/** Listens for keys. Called once, at startup. */
export function listen(): () => void {
  document.addEventListener('keydown', press)
  return () => {
    // The pending field may be what failed to load and broke the page.
    takeTypedAhead()
    document.removeEventListener('keydown', press)
  }
}

function press(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing || ['Control', 'Shift', 'Alt', 'Meta'].includes(event.key))
    return
  if (event.key === 'Escape') {
    leave(event)
    return
  }
  if (ahead !== null && event.key.length === 1 && !event.ctrlKey && !event.metaKey) {
    ahead += event.key
    event.preventDefault()
    return
  }
  const target = targetOf(event)
  if (belongsToField(event, isField(target))) return
  // Arrow keys choose among a question's options.
  if (event.key.startsWith('Arrow') && isOption(target)) return
  // Over a dialog, only the dialog handles keys.
  if (inDialog(target) && !nameOf(event).startsWith('mod+')) return
  // Enter and Space press the focused element.
  if (['Enter', ' '].includes(event.key) && !event.ctrlKey && !event.metaKey && isPressable(target)) return
  if (event.repeat && !/^(j|k|arrow)/i.test(event.key)) return
  answer(event)
}

function answer(event: KeyboardEvent): void {
  if (event.timeStamp - typedAt > SEQUENCE_MS) typed = []
  typedAt = event.timeStamp
  typed = [...typed, nameOf(event)]
  const states = actions.flatMap((action) =>
    keysOf(action).map((keys) => ({ action, at: progress(typed, keys) })),
  )
  const hit = states.find(({ at }) => at === 'full')
  if (hit) {
    typed = []
    event.preventDefault()
    runAction(hit.action)
  } else if (!states.some(({ at }) => at === 'part')) {
    const isBroken = typed.length > 1
    typed = []
    // The last key of a broken sequence may start another.
    if (isBroken) answer(event)
  }
}

export function runAction({ run, refused }: Action): void {
  if (refused) refused()
  else run()
}

/** Runs the action with this id, on any page. */
export function runNamed(id: string): void {
  const action = actions.find((each) => each.id === id)
  if (action) runAction(action)
}

/** Esc in stages: leave the field, then close what was opened last. Dialogs close themselves. */
function leave(event: KeyboardEvent): void {
  typed = []
  const target = targetOf(event)
  if (inDialog(target)) return
  if (isField(target)) {
    target?.blur()
    event.preventDefault()
    return
  }
  const last = escapes.at(-1)
  if (last) {
    event.preventDefault()
    last()
  }
}

/** Also within a shadow root, whose host the event itself names. */
function targetOf(event: Event): HTMLElement | null {
  const [target] = event.composedPath()
  return target instanceof HTMLElement ? target : null
}

function isField(element: HTMLElement | null): boolean {
  if (!element) return false
  if (element.isContentEditable || element.tagName === 'TEXTAREA' || element.tagName === 'SELECT') return true
  return (
    element instanceof HTMLInputElement && !['checkbox', 'radio', 'button', 'submit'].includes(element.type)
  )
}

const isOption = (element: HTMLElement | null): boolean =>
  element instanceof HTMLInputElement && element.type === 'radio'

function isPressable(element: HTMLElement | null): boolean {
  return Boolean(element?.closest('button, a[href], summary, input, [role="menuitem"], [role="option"]'))
}

function inDialog(element: HTMLElement | null): boolean {
  return Boolean(element?.closest('[role="dialog"], [role="alertdialog"], [role="menu"], [role="listbox"]'))
}

function set(next: Action[]): void {
  actions = next
  for (const listener of listeners) listener()
}
