// Renders the toasts from ui/toast-store and announces them to screen readers.
import { CircleCheck, TriangleAlert, X } from 'lucide-react'
import { useSyncExternalStore } from 'react'
import { Button, IconButton } from './button'
import { cx } from './cx'
import { dismiss, hold, onToasts, release, toastsNow } from './toast-store'

export default function Toasts() {
  const toasts = useSyncExternalStore(onToasts, toastsNow)
  return (
    <section
      aria-label="Notifications"
      className="pointer-events-none fixed inset-x-3 bottom-3 z-[70] flex flex-col items-center gap-2 md:right-auto md:bottom-20 md:left-4 md:items-start"
      onPointerEnter={hold}
      onPointerLeave={release}
      onFocus={hold}
      onBlur={release}
    >
      <div role="status" aria-live="polite" className="contents">
        {toasts.map(({ id, text, look, undo, action }) => (
          <div
            key={id}
            className="arrive pointer-events-auto flex w-full max-w-md items-center gap-2.5 rounded-card border border-line bg-raised py-2 pr-2 pl-3.5 shadow-raised sm:w-auto sm:min-w-72"
          >
            {look === 'done' ? (
              <CircleCheck size={16} aria-hidden className="shrink-0 text-ok-text" />
            ) : (
              <TriangleAlert size={16} aria-hidden className="shrink-0 text-danger-text" />
            )}
            <p className={cx('min-w-0 grow', look === 'problem' && 'font-medium')}>{text}</p>
            {undo && (
              <Button
                size="sm"
                onClick={() => {
                  dismiss(id)
                  void undo()
                }}
              >
                Undo
              </Button>
            )}
            {action && (
              <Button
                size="sm"
                onClick={() => {
                  dismiss(id)
                  action.run()
                }}
              >
                {action.label}
              </Button>
            )}
            <IconButton icon={X} label="Close" size="sm" onClick={() => dismiss(id)} />
          </div>
        ))}
      </div>
    </section>
  )
}
