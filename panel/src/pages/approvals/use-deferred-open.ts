// J and K with an approval open: the row updates at once, the approval after that paint, because rendering it takes
// longer than a key press may. When moving quickly, only the last one opens.
import { useCallback, useEffect, useRef, useState } from 'react'

interface DeferredOpen {
  /** The target of the keys, while another approval is still open. */
  id: number | null
  go: (id: number) => void
  /** Cancels, because something else was opened. */
  stop: () => void
}

export function useDeferredOpen(
  openId: number | undefined,
  open: (id: number) => Promise<void>,
): DeferredOpen {
  const [id, setId] = useState<number | null>(null)
  const latest = useRef(open)
  latest.current = open
  const cancel = useRef(() => {})
  const go = useCallback((next: number) => {
    cancel.current()
    setId(next)
    cancel.current = afterPaint(async () => {
      await latest.current(next)
      setId((now) => (now === next ? null : now))
    })
  }, [])
  const stop = useCallback(() => {
    cancel.current()
    setId(null)
  }, [])
  useEffect(() => () => cancel.current(), [])
  return { id: id === openId ? null : id, go, stop }
}

/** Runs after the next paint; returns a function that cancels it. */
function afterPaint(run: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  const frame = requestAnimationFrame(() => {
    timer = setTimeout(run)
  })
  return () => {
    cancelAnimationFrame(frame)
    clearTimeout(timer)
  }
}
