// A modal dialog on Base UI: traps the focus, restores it, and makes the page behind inert.

import { AlertDialog } from '@base-ui/react/alert-dialog'
import { CSPProvider } from '@base-ui/react/csp-provider'
import { Dialog as Base } from '@base-ui/react/dialog'
import { X } from 'lucide-react'
import { useEffect, useRef } from 'react'
import { IconButton } from '../button'
import { cx } from '../cx'
import type { DialogProps } from '../dialog'
import { takeOpener } from './opener'

const WIDTHS = { sm: 'sm:max-w-md', md: 'sm:max-w-xl', lg: 'sm:max-w-4xl' }

export function Dialog({
  open,
  onClose,
  title,
  about,
  footer,
  width = 'sm',
  firm,
  alert,
  bare,
  children,
  initialFocus,
}: DialogProps) {
  const popup = useRef<HTMLDivElement>(null)
  const Root = (alert ? AlertDialog.Root : Base.Root) as typeof Base.Root
  const opener = useRef<HTMLElement | null>(null)
  useEffect(() => {
    if (open) opener.current = takeOpener()
  }, [open])
  return (
    <CSPProvider disableStyleElements>
      <Root
        open={open}
        disablePointerDismissal={firm}
        onOpenChange={(next, details) => {
          if (next) return
          if (firm && details.reason === 'escape-key') details.cancel()
          else onClose()
        }}
      >
        <Base.Portal>
          <Base.Backdrop className="fixed inset-0 z-40 bg-[rgb(10_10_20/45%)]" />
          <Base.Popup
            ref={popup}
            finalFocus={() => (opener.current?.isConnected ? opener.current : true)}
            initialFocus={initialFocus ?? (() => firstField(popup.current))}
            className={cx(
              'arrive fixed z-50 flex flex-col overflow-hidden border border-line bg-raised text-ink shadow-raised outline-none',
              'inset-x-0 bottom-0 max-h-[92dvh] rounded-t-card sm:inset-x-auto sm:bottom-auto sm:left-1/2 sm:top-[12vh] sm:max-h-[76dvh] sm:w-[calc(100%-2rem)] sm:-translate-x-1/2 sm:rounded-card',
              WIDTHS[width],
            )}
          >
            {bare ? (
              <Base.Title className="sr-only">{title}</Base.Title>
            ) : (
              <header className="flex items-start gap-3 px-5 pt-4 pb-2">
                <div className="min-w-0 grow">
                  <Base.Title className="text-lg font-semibold">{title}</Base.Title>
                  {about && <Base.Description className="mt-0.5 text-muted">{about}</Base.Description>}
                </div>
                {!firm && !alert && <IconButton icon={X} label="Close" size="sm" onClick={onClose} />}
              </header>
            )}
            <div className={cx('min-h-0 grow overflow-y-auto', !bare && 'px-5 py-2')}>{children}</div>
            {footer && <footer className="flex flex-wrap justify-end gap-2 px-5 pt-2 pb-4">{footer}</footer>}
          </Base.Popup>
        </Base.Portal>
      </Root>
    </CSPProvider>
  )
}

/** The first field; without one, the dialog itself, so that no button is pressed by mistake. */
function firstField(popup: HTMLElement | null): HTMLElement | null {
  const field = 'input:not([hidden]):not([type="hidden"]):not([readonly]), textarea, select'
  return popup?.querySelector<HTMLElement>(field) ?? popup
}
