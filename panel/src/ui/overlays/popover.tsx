// Something small beside its button, on Base UI.
import { CSPProvider } from '@base-ui/react/csp-provider'
import { Popover as Base } from '@base-ui/react/popover'
import type { PopoverProps } from '../popover'

export function Popover({
  trigger,
  title,
  children,
  align = 'start',
  startOpen,
}: PopoverProps & { startOpen?: boolean }) {
  return (
    <CSPProvider disableStyleElements>
      <Base.Root defaultOpen={startOpen}>
        <Base.Trigger render={trigger} />
        <Base.Portal>
          <Base.Positioner align={align} sideOffset={4} className="z-50">
            <Base.Popup className="arrive max-h-[70vh] w-80 max-w-[calc(100vw-1rem)] overflow-y-auto rounded-card border border-line bg-raised p-4 shadow-raised outline-none">
              <Base.Title className="mb-1 font-semibold">{title}</Base.Title>
              {children}
            </Base.Popup>
          </Base.Positioner>
        </Base.Portal>
      </Base.Root>
    </CSPProvider>
  )
}
