// A row that scrolls sideways where it does not fit: the current item is in view, and an edge with more behind it fades.
// The fading is in styles.css (`scroll-row`).
import { type RefObject, useEffect, useRef } from 'react'

/** `current` changes with the current item. */
export function useScrollRow(current: string): RefObject<HTMLElement | null> {
  const row = useRef<HTMLElement>(null)
  useEffect(() => {
    const box = row.current
    if (!box) return
    const fade = () => {
      const left = box.scrollLeft
      const right = box.scrollWidth - box.clientWidth - left
      box.toggleAttribute('data-more-left', left > 1)
      box.toggleAttribute('data-more-right', right > 1)
    }
    const observer = new ResizeObserver(fade)
    observer.observe(box)
    box.addEventListener('scroll', fade, { passive: true })
    return () => {
      observer.disconnect()
      box.removeEventListener('scroll', fade)
    }
  }, [])
  // biome-ignore lint/correctness/useExhaustiveDependencies: another item is current
  useEffect(() => {
    const box = row.current
    const item = [...(box?.querySelectorAll('[aria-current]') ?? [])].find(
      (each) => each.getClientRects().length > 0,
    )
    if (!box || !item) return
    const [outer, inner] = [box.getBoundingClientRect(), item.getBoundingClientRect()]
    box.scrollLeft += inner.left + inner.width / 2 - (outer.left + outer.width / 2)
  }, [current])
  return row
}
