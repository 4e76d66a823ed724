// Shows a short message from anywhere. ui/toasts renders it.

export interface Toast {
  id: number
  text: string
  look: 'done' | 'problem'
  /** Undoes the action. */
  undo?: () => unknown
  /** A follow-up: "Open", for example. */
  action?: { label: string; run: () => void }
}

let toasts: Toast[] = []
let last = 0
const listeners = new Set<() => void>()
const timers = new Map<number, ReturnType<typeof setTimeout>>()

/** How long a toast stays; longer if it has an action. */
const STAYS_MS = 5_000
const STAYS_WITH_ACTION_MS = 10_000

export const toastsNow = () => toasts

export function onToasts(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Confirms a finished action. */
export function say(text: string, options: Pick<Toast, 'undo' | 'action'> = {}): number {
  return add({ text, look: 'done', ...options })
}

/** Reports a refusal and its reason. Stays until closed. */
export function sayProblem(text: string): number {
  return add({ text, look: 'problem' })
}

export function dismiss(id: number): void {
  clearTimeout(timers.get(id))
  timers.delete(id)
  set(toasts.filter((toast) => toast.id !== id))
}

/** Drops toasts of the previous user, whose actions must no longer run. */
export const dismissAll = (): void => set([])

/** Keeps all toasts while one is hovered or focused. */
export function hold(): void {
  for (const timer of timers.values()) clearTimeout(timer)
}

export function release(): void {
  for (const toast of toasts) count(toast)
}

function add(toast: Omit<Toast, 'id'>): number {
  last += 1
  const added = { ...toast, id: last }
  // Repeated text is one toast; show at most four.
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
