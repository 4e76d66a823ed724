// A record beside its list. The list keeps the shortcuts, so J/K step through it; Esc closes. Fills the page on phones.
import { Link, type LinkProps } from '@tanstack/react-router'
import { ExternalLink, X } from 'lucide-react'
import { type ReactNode, useRef } from 'react'
import { useEscape } from '../keys/use-actions'
import { buttonClass, IconButton } from './button'
import { useInertBackground } from './use-inert-background'
import { Visible } from './visible'

interface Props {
  title: string
  onClose: () => void
  /** The link to the record's own page. */
  link?: LinkProps
  actions?: ReactNode
  /** Fixed at the bottom, for the decision. */
  footer?: ReactNode
  children: ReactNode
}

export function Peek({ title, onClose, link, actions, footer, children }: Props) {
  const box = useRef<HTMLElement>(null)
  useEscape(onClose)
  useInertBackground(box)
  return (
    <aside
      ref={box}
      tabIndex={-1}
      aria-label={title}
      className="slide-in fixed inset-0 z-30 flex flex-col border-line bg-canvas outline-none lg:static lg:z-auto lg:w-[min(46vw,44rem)] lg:shrink-0 lg:border-l"
    >
      <header className="flex min-h-12 shrink-0 items-center gap-2 border-b border-line py-1.5 pr-2 pl-4">
        <h2 className="min-w-0 grow truncate font-semibold">
          <Visible text={title} />
        </h2>
        {actions}
        {link && (
          <Link
            {...link}
            className={buttonClass('quiet', 'md', 'size-8 px-0! coarse:size-11')}
            aria-label="Open on its own page"
            data-tip="Open on its own page"
            data-keys="mod+enter"
          >
            <ExternalLink size={16} aria-hidden />
          </Link>
        )}
        <IconButton icon={X} label="Close" keys="escape" onClick={onClose} />
      </header>
      <div className="min-h-0 grow overflow-y-auto">{children}</div>
      {footer && <footer className="shrink-0 border-t border-line bg-canvas p-3">{footer}</footer>}
    </aside>
  )
}

/** A list with its peek, if one is open. */
export function WithPeek({ list, peek }: { list: ReactNode; peek: ReactNode }) {
  return (
    <div className="flex min-h-0 grow overflow-x-clip">
      <div className="flex min-h-0 min-w-0 grow flex-col">{list}</div>
      {peek}
    </div>
  )
}
