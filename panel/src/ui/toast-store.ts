// Short words about what just happened, from anywhere. ui/toasts shows them.

export interface Toast {
  id: number
  text: string
  look: 'done' | 'problem'
  /** Takes it back. */
  undo?: () => unknown
  /** Another step: "Open", for example. */
  action?: { label: string; run: () => void }
}

let toasts: Toast[] = []
let last = 0
const listeners = new Set<() => void>()
const timers = new Map<number, ReturnType<typeof setTimeout>>()

/** How long a toast stays; longer if something can be done with it. */
const STAYS_MS = 5_000
const STAYS_WITH_ACTION_MS = 10_000

export const toastsNow = () => toasts

export function onToasts(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Says that something is done. */
export function say(text: string, options: Pick<Toast, 'undo' | 'action'> = {}): number {
  return add({ text, look: 'done', ...options })
}

/** Says that something was refused, and why. Stays until it is closed. */
export function sayProblem(text: string): number {
  return add({ text, look: 'problem' })
}

export function dismiss(id: number): void {
  clearTimeout(timers.get(id))
  timers.delete(id)
  set(toasts.filter((toast) => toast.id !== id))
}

/** They are someone else's: what they offer must no longer be done. */
export const dismissAll = (): void => set([])

/** Keeps all while the pointer or the focus is on them. */
export function hold(): void {
  for (const timer of timers.values()) clearTimeout(timer)
}

export function release(): void {
  for (const toast of toasts) count(toast)
}

function add(toast: Omit<Toast, 'id'>): number {
  last += 1
  const added = { ...toast, id: last }
  // The same words twice are one toast; more than four are a wall.
  set([...toasts.filter(({ text }) => text !== toast.text), added].slice(-4))
  count(added)
  return added.id
}

function count({ id, look, undo, action }: Toast): void {
  if (look === 'problem') return
  timers.set(
    id,
    setTimeout(() => dismiss(id), undo || action ? STAYS_WITH_ACTION_MS : STAYS_MS),
  )
}

function set(next: Toast[]): void {
  toasts = next
  for (const listener of listeners) listener()
}
