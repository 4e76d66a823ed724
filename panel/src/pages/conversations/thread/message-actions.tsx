// The actions on a message, shown with the pointer or the focus in it: one stop for Tab, then the arrow keys.
import { Copy, Link2, type LucideIcon, Quote } from 'lucide-react'
import { type KeyboardEvent, useState } from 'react'
import { IconButton } from '../../../ui/button'
import { copyText } from '../../../ui/copy'
import { cx } from '../../../ui/cx'
import { say, sayProblem } from '../../../ui/toast-store'

async function copy(text: string, said: string): Promise<void> {
  if (await copyText(text)) say(said)
  else sayProblem('The browser did not allow copying. Select the text and copy it by hand.')
}

interface Props {
  seq: number
  text: string
  /** Written by the current user: at the left, where the bubble is not. */
  mine: boolean
  onQuote: (text: string) => void
}

export function MessageActions({ seq, text, mine, onQuote }: Props) {
  const [stop, setStop] = useState(0)
  const actions: { label: string; icon: LucideIcon; run: () => void }[] = [
    { label: 'Copy text', icon: Copy, run: () => void copy(text, 'Copied') },
    { label: 'Quote', icon: Quote, run: () => onQuote(text) },
    {
      label: 'Copy link',
      icon: Link2,
      run: () => void copy(`${location.origin}${location.pathname}?seq=${seq}`, 'Link copied'),
    },
  ]
  const move = (event: KeyboardEvent<HTMLDivElement>) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (!by) return
    event.preventDefault()
    const next = (stop + by + actions.length) % actions.length
    setStop(next)
    event.currentTarget.querySelectorAll('button')[next]?.focus()
  }
  return (
    <div
      role="toolbar"
      aria-label={`Actions on message ${seq}`}
      onKeyDown={move}
      className={cx(
        'message-actions absolute -top-2 flex rounded-control border border-line bg-raised',
        mine ? 'left-3' : 'right-3',
      )}
    >
      {actions.map(({ label, icon, run }, at) => (
        <IconButton
          key={label}
          size="sm"
          icon={icon}
          label={label}
          tabIndex={at === stop ? 0 : -1}
          onFocus={() => setStop(at)}
          onClick={run}
        />
      ))}
    </div>
  )
}
