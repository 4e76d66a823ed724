// The panel's only tooltip: shows `data-tip` and `data-keys` of the hovered or focused element.
// One listener instead of a component per button keeps lists of a thousand rows fast.
import { useEffect, useLayoutEffect, useRef, useState } from 'react'
import { Kbd } from './kbd'

const WAIT_MS = 450

interface Shown {
  text: string
  keys: string | null
  at: DOMRect
}

export default function Tips() {
  const [shown, show] = useState<Shown | null>(null)
  const box = useRef<HTMLDivElement>(null)

  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    const find = (event: Event) =>
      event.target instanceof Element ? event.target.closest<HTMLElement>('[data-tip]') : null
    const read = (element: HTMLElement): Shown | null => {
      const text = element.dataset.tip
      return text && element.isConnected
        ? { text, keys: element.dataset.keys ?? null, at: element.getBoundingClientRect() }
        : null
    }
    const hide = () => {
      clearTimeout(timer)
      show(null)
    }
    const over = (event: PointerEvent) => {
      const element = event.pointerType === 'touch' ? null : find(event)
      hide()
      if (element) timer = setTimeout(() => show(read(element)), WAIT_MS)
    }
    const focus = (event: FocusEvent) => {
      const element = find(event)
      if (element?.matches(':focus-visible')) show(read(element))
    }
    const events = ['pointerdown', 'keydown', 'scroll', 'focusout'] as const
    document.addEventListener('pointerover', over)
    document.addEventListener('focusin', focus)
    for (const name of events) document.addEventListener(name, hide, true)
    return () => {
      hide()
      document.removeEventListener('pointerover', over)
      document.removeEventListener('focusin', focus)
      for (const name of events) document.removeEventListener(name, hide, true)
    }
  }, [])

  useLayoutEffect(() => {
    const element = box.current
    if (!element || !shown) return
    const { width, height } = element.getBoundingClientRect()
    const { left, width: wide, top, bottom } = shown.at
    const below = bottom + height + 8 < innerHeight
    element.style.left = `${Math.max(6, Math.min(left + wide / 2 - width / 2, innerWidth - width - 6))}px`
    element.style.top = `${below ? bottom + 6 : top - height - 6}px`
  }, [shown])

  if (!shown) return null
  // Visual only: screen readers get the names from the buttons.
  return (
    <div
      ref={box}
      aria-hidden
      className="pointer-events-none fixed z-[80] flex max-w-72 items-center gap-2 rounded-control bg-ink px-2 py-1 text-xs text-canvas shadow-raised"
    >
      {shown.text}
      {shown.keys && <Kbd keys={shown.keys} />}
    </div>
  )
}
