// Briefly highlights what a live change altered, so that people notice it without movement. Ageing times do not count
// as changes, nor do constantly measured values (`data-ticking`). Disabled for people who prefer reduced motion.
import { type RefObject, useLayoutEffect, useRef } from 'react'

const LASTS_MS = 1_600

/** Pass the returned ref to the element to watch. */
export function useFade<E extends HTMLElement>(): RefObject<E | null> {
  const ref = useRef<E>(null)
  const shown = useRef<string | null>(null)
  // After each render, because the content may have changed.
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

/** An element's text, with absolute instead of relative times. */
function contentOf(node: Node): string {
  if (node.nodeType === Node.TEXT_NODE) return node.nodeValue ?? ''
  if (node instanceof HTMLTimeElement) return node.dateTime
  if (node instanceof HTMLElement && node.dataset.ticking !== undefined) return ''
  return Array.from(node.childNodes, contentOf).join('')
}
