// On narrow screens a peek covers the page. It takes the focus then and makes the page behind it inert.
import { type RefObject, useLayoutEffect } from 'react'

/** The `lg:` breakpoint: from here on both fit side by side. */
const WIDE = '(min-width: 64rem)'

/** Makes everything up to the shell's frame inert while `box` covers the page. */
export function useInertBackground(box: RefObject<HTMLElement | null>): void {
  // Before painting: a covered page must never react.
  useLayoutEffect(() => {
    const wide = matchMedia(WIDE)
    let leave = () => {}
    const change = () => {
      leave()
      leave = wide.matches || !box.current ? () => {} : makeRestInert(box.current)
    }
    change()
    wide.addEventListener('change', change)
    return () => {
      wide.removeEventListener('change', change)
      leave()
    }
  }, [box])
}

function makeRestInert(box: HTMLElement): () => void {
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
