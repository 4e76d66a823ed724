// The one registry of what can be done here. It answers keys, fills the palette and the `?` sheet, and gives tooltips
// their keys. No React here; components register with keys/use-actions.
import { belongsToField, isSingle, nameOf, progress } from './match'

export interface Action {
  /** Unique: `approvals.approve`. */
  id: string
  /** A verb and what it is done to: "Approve". */
  label: string
  /** Heads its group in the sheet and the palette: "Approval", "Go to". */
  group: string
  /** `a`, `mod+enter`, `g a`. Several are alternatives. */
  keys?: string | string[]
  run: () => void
  /** Why the person may not do it: shows it instead of running. */
  refused?: (() => void) | null
  /** Works, but the palette does not offer it: moving in a list. */
  hidden?: boolean
  /** Words to be found by. */
  also?: string
}

/** How long a sequence waits for its next key. */
const SEQUENCE_MS = 1200

let actions: Action[] = []
let typed: string[] = []
/** When the last of them was pressed: on a busy page that is long before it is answered. */
let typedAt = 0
/** What was typed for a field that is still on its way; null if none is. */
let ahead: string | null = null
const escapes: (() => void)[] = []
const listeners = new Set<() => void>()
/** Off until it is known who is signed in, and what they want. */
let singleKeys = false

export const actionsNow = () => actions

export function onActions(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** What was registered last comes first: a peek's keys hold over its page's. */
export function register(added: Action[]): () => void {
  set([...added, ...actions])
  return () => set(actions.filter((action) => !added.includes(action)))
}

/** What Esc does next; the last one registered is asked first. */
export function registerEscape(run: () => void): () => void {
  escapes.push(run)
  return () => {
    const at = escapes.lastIndexOf(run)
    if (at >= 0) escapes.splice(at, 1)
  }
}

/**
 * Switches keys that are a character by themselves on or off: who speaks to the computer, or hits keys by mistake, would
 * set them off unawares (WCAG 2.1.4). Of what it allows, one switch is the simplest: all that they do is also in the
 * palette, which has a modifier, or on the page. Keys of one's own would be a second table, to be kept free of the
 * browser's and the screen reader's.
 */
export function setSingleKeys(on: boolean): void {
  if (on === singleKeys) return
  singleKeys = on
  set([...actions])
}

export const singleKeysNow = () => singleKeys

/** Whether these keys do something for this person. */
export const works = (keys: string): boolean => singleKeys || !isSingle(keys)

/** The keys of an action that work. */
export const keysOf = ({ keys = [] }: Pick<Action, 'keys'>): string[] => [keys].flat().filter(works)

/** Something with a field was asked for and may have to be fetched: what is typed meanwhile is for it, not for the page. */
export function expectField(): void {
  ahead ??= ''
}

/** The field is there, or no longer wanted. Answers what was typed meanwhile. */
export function takeAhead(): string {
  const text = ahead ?? ''
  ahead = null
  return text
}

/** Listens for keys. The panel starts it once. */
export function listen(): () => void {
  document.addEventListener('keydown', press)
  return () => {
    // The field may be what could not be fetched and broke the page.
    takeAhead()
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
  const target = event.target instanceof HTMLElement ? event.target : null
  if (belongsToField(event, isField(target))) return
  // Arrows choose among the options of a question.
  if (event.key.startsWith('Arrow') && isOption(target)) return
  // Over a dialog, only the dialog acts.
  if (inDialog(target) && !nameOf(event).startsWith('mod+')) return
  // Enter and Space press what has the focus.
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
    // The last key of a broken sequence may begin another.
    if (isBroken) answer(event)
  }
}

export function runAction({ run, refused }: Action): void {
  if (refused) refused()
  else run()
}

/** Does what is registered under this id, on any page. */
export function runNamed(id: string): void {
  const action = actions.find((each) => each.id === id)
  if (action) runAction(action)
}

/** Esc in stages: leaves the field, then closes what was opened last. Dialogs close themselves. */
function leave(event: KeyboardEvent): void {
  typed = []
  const target = event.target instanceof HTMLElement ? event.target : null
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
