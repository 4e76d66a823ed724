// J and K while an approval is open: the row is drawn at once, the approval after that paint. Drawing all of it takes longer
// than a key may. Of those that are passed quickly only the last one is opened.
import { useCallback, useEffect, useRef, useState } from 'react'

interface Ahead {
  /** Where the keys have got to, while another approval is still open. */
  id: number | null
  go: (id: number) => void
  /** Something else is opened. */
  stop: () => void
}

export function useAhead(openId: number | undefined, open: (id: number) => Promise<void>): Ahead {
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

/** Runs it as soon as the next frame is painted; answers a function that keeps it from running. */
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
