// A button that acts only when held, for irreversible actions. On the keyboard, hold Enter or Space.

import type { Ref } from 'react'
import { useEffect, useImperativeHandle, useRef, useState } from 'react'
import { useRefusal } from '../permissions/refusal'
import { Button, type ButtonProps } from './button'

/** How long to hold. */
export const HOLD_MS = 1_200
const HINT = 'Nothing happened yet: hold the button, or Enter, until it is full.'

export interface HoldHandle {
  /** Focuses the button and says how to hold it. */
  point: () => void
}

interface Props extends Omit<ButtonProps, 'onClick' | 'ref'> {
  onHeld: () => void
  handle?: Ref<HoldHandle>
}

export function HoldButton({ onHeld, handle, children, className, busy, ...rest }: Props) {
  const [held, setHeld] = useState(false)
  const [hint, setHint] = useState(false)
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  const box = useRef<HTMLSpanElement>(null)
  const refusal = useRefusal()
  const stop = () => {
    clearTimeout(timer.current)
    setHeld(false)
  }
  const start = () => {
    if (busy || refusal || rest.disabled) return
    clearTimeout(timer.current)
    setHeld(true)
    timer.current = setTimeout(() => {
      setHeld(false)
      setHint(false)
      onHeld()
    }, HOLD_MS)
  }
  useEffect(() => () => clearTimeout(timer.current), [])
  useImperativeHandle(handle, () => ({
    point: () => {
      box.current?.querySelector('button')?.focus()
      setHint(true)
    },
  }))
  const isPress = (key: string) => key === 'Enter' || key === ' '
  return (
    <span ref={box} className="inline-flex flex-col items-start">
      <Button
        {...rest}
        busy={busy}
        className={`relative overflow-hidden ${className ?? ''}`}
        onPointerDown={(event) => event.button === 0 && start()}
        onPointerUp={stop}
        onPointerLeave={stop}
        onPointerCancel={stop}
        onContextMenu={(event) => event.preventDefault()}
        onBlur={() => {
          stop()
          setHint(false)
        }}
        onKeyDown={(event) => {
          if (!isPress(event.key)) return
          event.preventDefault()
          if (!event.repeat) start()
        }}
        onKeyUp={(event) => isPress(event.key) && stop()}
        onClick={() => setHint(true)}
      >
        <span
          aria-hidden
          className="absolute inset-y-0 left-0 bg-[rgb(255_255_255/30%)]"
          style={{ width: held ? '100%' : 0, transition: held ? `width ${HOLD_MS}ms linear` : undefined }}
        />
        <span className="relative">{children}</span>
      </Button>
      <span role="status" className="sr-only">
        {held ? 'Keep holding' : hint ? HINT : ''}
      </span>
      {hint && (
        <span aria-hidden className="arrive mt-1 text-sm text-warn-text">
          {HINT}
        </span>
      )}
    </span>
  )
}
