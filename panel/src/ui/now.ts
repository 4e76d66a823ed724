// One ticking clock for all times on the page, so that a list of a thousand rows needs one timer.
import { useSyncExternalStore } from 'react'

let now = Date.now()
let timer: ReturnType<typeof setInterval> | undefined
const listeners = new Set<() => void>()

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  timer ??= setInterval(() => {
    now = Date.now()
    for (const each of listeners) each()
  }, 1000)
  return () => {
    listeners.delete(listener)
    if (listeners.size === 0) {
      clearInterval(timer)
      timer = undefined
    }
  }
}

/** The current time, updated once every `step` milliseconds. */
export function useNow(step = 1000): number {
  return useSyncExternalStore(subscribe, () => Math.floor(now / step) * step)
}
