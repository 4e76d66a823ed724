// Opens the dialog that stops the whole organization, from anywhere.
let isOpen = false
const listeners = new Set<() => void>()

export const stopAsked = () => isOpen

export function onStopAsked(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export function askStop(open: boolean): void {
  isOpen = open
  for (const listener of listeners) listener()
}

/** A function that asks whether to stop all agents. Gate it with `organization.stop`. */
export const useStop = () => () => askStop(true)
