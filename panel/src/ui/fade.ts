// Fades what a live change has altered, once, so that people notice it without anything moving. Times that only grow older
// don't count as changes, and neither do values that are measured all the time (`data-ticking`). For people who want less
// motion nothing fades.
import { type RefObject, useLayoutEffect, useRef } from 'react'

const LASTS_MS = 1_600

/** Give the answer to the element whose contents are watched. */
export function useFade<E extends HTMLElement>(): RefObject<E | null> {
  const ref = useRef<E>(null)
  const shown = useRef<string | null>(null)
  // After each render, since the content may have changed.
  useLayoutEffect(() => {
    if (!ref.current) return
    const now = contentOf(ref.current)
    if (shown.current !== null && shown.current !== now) fade(ref.current)
    shown.current = now
  })
  return ref
}

function fade(element: HTMLElement): void {
  if (matchMedia('(prefers-reduced-motion: reduce)').matches) return
  for (const animation of element.getAnimations()) if (animation.id === 'changed') animation.cancel()
  const from = getComputedStyle(element).getPropertyValue('--accent-soft')
  const options = { id: 'changed', duration: LASTS_MS, easing: 'ease-out' }
  element.animate([{ backgroundColor: from }, { backgroundColor: 'transparent' }], options)
}

/** The text of an element, with moments instead of how long they are ago. */
function contentOf(node: Node): string {
  if (node.nodeType === Node.TEXT_NODE) return node.nodeValue ?? ''
  if (node instanceof HTMLTimeElement) return node.dateTime
  if (node instanceof HTMLElement && node.dataset.ticking !== undefined) return ''
  return Array.from(node.childNodes, contentOf).join('')
}
