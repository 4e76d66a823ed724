// Copies a text and confirms it.
import { Check, Copy as Icon } from 'lucide-react'
import { useEffect, useState } from 'react'
import { Button, IconButton } from './button'
import { sayProblem } from './toast-store'

/** `navigator.clipboard` is unavailable over plain HTTP on a local network. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    const area = document.createElement('textarea')
    area.value = text
    area.style.position = 'fixed'
    area.style.opacity = '0'
    const host = document.querySelector('[role="dialog"]') ?? document.body
    host.append(area)
    area.select()
    const copied = document.execCommand('copy')
    area.remove()
    return copied
  }
}

interface Props {
  text: string
  /** Accessible label: "Copy the token". */
  label?: string
  /** Shows the label beside the icon. */
  wide?: boolean
  onCopied?: () => void
}

export function Copy({ text, label = 'Copy', wide, onCopied }: Props) {
  const [done, setDone] = useState(false)
  useEffect(() => {
    if (!done) return
    const timer = setTimeout(() => setDone(false), 1600)
    return () => clearTimeout(timer)
  }, [done])
  const copy = async () => {
    const copied = await copyText(text)
    setDone(copied)
    if (copied) onCopied?.()
    else sayProblem('The browser did not allow copying. Select the text and copy it by hand.')
  }
  const icon = done ? Check : Icon
  const named = done ? 'Copied' : label
  return (
    <>
      {wide ? (
        <Button icon={icon} onClick={() => void copy()}>
          {named}
        </Button>
      ) : (
        <IconButton icon={icon} label={named} size="sm" onClick={() => void copy()} />
      )}
      <span role="status" className="sr-only">
        {done && 'Copied'}
      </span>
    </>
  )
}
