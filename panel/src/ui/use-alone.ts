// On a narrow screen what opens beside the page covers it: then it has the focus, and the page behind can't be reached
// until it is closed.
import { type RefObject, useLayoutEffect } from 'react'

/** As wide as `lg:` in the classes: from here on both stand side by side. */
const BESIDE = '(min-width: 64rem)'

/** Marks what covers the page, and where that ends: the frame that has the navigation and the page. */
export function useAlone(box: RefObject<HTMLElement | null>): void {
  // Before it is painted: no one sees a cover over a page that still answers.
  useLayoutEffect(() => {
    const wide = matchMedia(BESIDE)
    let leave = () => {}
    const change = () => {
      leave()
      leave = wide.matches || !box.current ? () => {} : standAlone(box.current)
    }
    change()
    wide.addEventListener('change', change)
    return () => {
      wide.removeEventListener('change', change)
      leave()
    }
  }, [box])
}

function standAlone(box: HTMLElement): () => void {
  const before = document.activeElement
  const hidden: HTMLElement[] = []
  for (let at = box; at.parentElement && at.dataset.frame === undefined; at = at.parentElement) {
    for (const other of at.parentElement.children) {
      if (other === at || !(other instanceof HTMLElement) || other.inert) continue
      other.inert = true
      hidden.push(other)
    }
  }
  box.focus({ preventScroll: true })
  return () => {
    for (const other of hidden) other.inert = false
    if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true })
  }
}
