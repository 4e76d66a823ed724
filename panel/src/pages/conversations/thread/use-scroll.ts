// Keeps the reading position. When content above or below changes (older messages, pictures, streaming text), the top
// message stays in place; at the end, the end stays in view.
import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react'
import type { Position } from './scroll-positions'

/** Closer to the end than this counts as the end. */
const NEAR_END = 32

export interface Scroll {
  scroller: RefObject<HTMLDivElement | null>
  content: RefObject<HTMLDivElement | null>
  onScroll: () => void
  isAtEnd: boolean
  /** Scrolls a message to this distance from the top. */
  show: (seq: number, offset?: number) => void
  toEnd: () => void
  /** The current reading position. */
  place: () => Position
  /** The last visible seq. */
  lastInView: () => number
}

interface Options {
  /** More messages follow, so the end of the loaded ones is not the end. */
  hasAfter: boolean
  /** The view is close to the first or last loaded message. */
  onNearTop: () => void
  onNearBottom: () => void
  onMoved: () => void
}

export function useScroll(options: Options): Scroll {
  const scroller = useRef<HTMLDivElement>(null)
  const content = useRef<HTMLDivElement>(null)
  const anchor = useRef<Position>({ seq: null, offset: 0 })
  // The position set by `settle`. Content may have grown before the browser reports the scroll.
  const settledAt = useRef(-1)
  const latest = useRef(options)
  latest.current = options
  const [isAtEnd, setAtEnd] = useState(true)

  const settle = useCallback(() => {
    const box = scroller.current
    if (!box) return
    // The browser reports a scroll in its next frame, possibly late: a user who left the end is not taken back to it.
    if (anchor.current.seq === null && box.scrollTop < settledAt.current - 1 && leftBelow(box) > NEAR_END)
      return
    const { seq, offset } = anchor.current
    if (seq === null) {
      box.scrollTop = box.scrollHeight
    } else {
      const element = content.current?.querySelector(`[data-seq="${seq}"]`)
      if (element) {
        const by = element.getBoundingClientRect().top - box.getBoundingClientRect().top - offset
        if (Math.abs(by) > 0.5) box.scrollTop += by
      }
    }
    settledAt.current = box.scrollTop
    lookAround(box, latest.current)
  }, [])

  const onScroll = useCallback(() => {
    const box = scroller.current
    if (!box) return
    const atEnd = leftBelow(box) < NEAR_END && !latest.current.hasAfter
    const isOwn = Math.abs(box.scrollTop - settledAt.current) < 1
    // No one has scrolled away from the end.
    if (atEnd || !isOwn || anchor.current.seq !== null) {
      anchor.current = atEnd ? { seq: null, offset: 0 } : topOf(box, content.current, anchor.current)
      setAtEnd(atEnd)
    }
    lookAround(box, latest.current)
    latest.current.onMoved()
  }, [])

  useLayoutEffect(settle)
  useEffect(() => {
    const observer = new ResizeObserver(settle)
    if (scroller.current) observer.observe(scroller.current)
    if (content.current) observer.observe(content.current)
    return () => observer.disconnect()
  }, [settle])

  const show = useCallback(
    (seq: number, offset = 72) => {
      anchor.current = { seq, offset }
      setAtEnd(false)
      settle()
    },
    [settle],
  )
  const toEnd = useCallback(() => {
    anchor.current = { seq: null, offset: 0 }
    settledAt.current = -1
    setAtEnd(true)
    settle()
  }, [settle])
  const place = useCallback(() => anchor.current, [])
  const lastInView = useCallback(() => lastSeqAbove(scroller.current, content.current), [])
  return { scroller, content, onScroll, isAtEnd, show, toEnd, place, lastInView }
}

/** Loads more before the user reaches an edge. */
function lookAround(box: HTMLElement, { onNearTop, onNearBottom }: Options): void {
  const margin = Math.max(600, box.clientHeight)
  if (box.scrollTop < margin) onNearTop()
  if (leftBelow(box) < margin) onNearBottom()
}

/** The pixels below the view. */
const leftBelow = (box: HTMLElement) => box.scrollHeight - box.scrollTop - box.clientHeight

const rows = (content: HTMLElement | null) => [
  ...(content?.querySelectorAll<HTMLElement>('[data-seq]') ?? []),
]
const seqOf = (element: HTMLElement) => Number(element.dataset.seq)

/** The first message that reaches into the view. */
function topOf(box: HTMLElement, content: HTMLElement | null, before: Position): Position {
  const { top } = box.getBoundingClientRect()
  const all = rows(content).filter((element) => element.dataset.loose === undefined)
  // Rows are in order: binary search.
  let [low, high] = [0, all.length - 1]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((all[middle] as HTMLElement).getBoundingClientRect().bottom > top) high = middle
    else low = middle + 1
  }
  const found = all[low]
  return found ? { seq: seqOf(found), offset: found.getBoundingClientRect().top - top } : before
}

function lastSeqAbove(box: HTMLElement | null, content: HTMLElement | null): number {
  if (!box) return 0
  const { bottom } = box.getBoundingClientRect()
  const seen = rows(content).filter((element) => element.getBoundingClientRect().top < bottom)
  const last = seen.at(-1)
  // A call's result is inside the call and counts as seen with it.
  return last ? Math.max(seqOf(last), Number(last.dataset.through ?? 0)) : 0
}
