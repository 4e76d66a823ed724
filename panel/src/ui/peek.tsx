// A record beside its list. The list keeps the shortcuts, so J/K step through it; Esc closes. Fills the page on phones.
import { Link, type LinkProps } from '@tanstack/react-router'
import { ExternalLink, X } from 'lucide-react'
import { type CSSProperties, type ReactNode, useRef, useState } from 'react'
import { useActions, useEscape } from '../keys/use-actions'
import { buttonClass, IconButton } from './button'
import { keep, kept } from './theme'
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
  const [width, setWidth] = useState(() => kept('muster.peek'))
  const resize = (to: number) => {
    keep('muster.peek', `${to}px`)
    setWidth(`${to}px`)
  }
  const change = (by: number) => box.current && resize(box.current.offsetWidth + by)
  useActions([
    { id: 'peek.wider', label: 'Widen the record beside the list', group: 'Panel', run: () => change(80) },
    {
      id: 'peek.narrower',
      label: 'Narrow the record beside the list',
      group: 'Panel',
      run: () => change(-80),
    },
  ])
  return (
    <aside
      ref={box}
      style={width ? ({ '--peek': width } as CSSProperties) : undefined}
      tabIndex={-1}
      aria-label={title}
      className="slide-in fixed inset-0 z-30 flex flex-col border-line bg-canvas outline-none lg:relative lg:z-auto lg:w-[clamp(22rem,var(--peek,34vw),60vw)] lg:shrink-0 lg:border-l"
    >
      <div
        className="absolute inset-y-0 -left-1 hidden w-2 cursor-col-resize touch-none select-none lg:block"
        onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
        onPointerMove={({ currentTarget, pointerId, clientX }) =>
          currentTarget.hasPointerCapture(pointerId) && resize(window.innerWidth - clientX)
        }
      />
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
      {footer && <footer className="shrink-0 border-t border-line bg-canvas px-4 py-3">{footer}</footer>}
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
