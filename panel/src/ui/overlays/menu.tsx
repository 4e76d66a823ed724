// A menu of actions, on Base UI.
import { CSPProvider } from '@base-ui/react/csp-provider'
import { Menu as Base } from '@base-ui/react/menu'
import { useRef } from 'react'
import { cx } from '../cx'
import { Kbd } from '../kbd'
import type { MenuEntry, MenuProps } from '../menu'
import { leftMenu } from './opener'

const ITEM =
  'flex w-full select-none items-center gap-2.5 rounded-[5px] px-2 py-1.5 text-left outline-none data-[highlighted]:bg-hover coarse:py-2.5'

export function Menu({ entries, trigger, align = 'end', startOpen }: MenuProps & { startOpen?: boolean }) {
  const button = useRef<HTMLButtonElement>(null)
  return (
    <CSPProvider disableStyleElements>
      <Base.Root defaultOpen={startOpen}>
        <Base.Trigger ref={button} render={trigger} />
        <Base.Portal>
          <Base.Positioner align={align} sideOffset={4} className="z-50 outline-none">
            <Base.Popup className="arrive max-h-[70vh] min-w-48 max-w-80 overflow-y-auto rounded-control border border-line bg-raised p-1 shadow-raised outline-none">
              {entries.map((entry, index) => (
                <Entry
                  key={entry === 'line' ? index : entry.label}
                  entry={entry}
                  onLeave={() => leftMenu(button.current)}
                />
              ))}
            </Base.Popup>
          </Base.Positioner>
        </Base.Portal>
      </Base.Root>
    </CSPProvider>
  )
}

function Entry({ entry, onLeave }: { entry: MenuEntry; onLeave: () => void }) {
  if (entry === 'line') return <Base.Separator className="my-1 h-px bg-line" />
  const { icon: Icon, label, about, keys, look, refused, onSelect, checked, disabled } = entry
  return (
    <Base.Item
      disabled={disabled}
      aria-disabled={refused || disabled ? true : undefined}
      onClick={() => {
        onLeave()
        if (refused) refused()
        else onSelect()
      }}
      className={cx(ITEM, look === 'danger' && 'text-danger-text', (refused || disabled) && 'text-faint')}
    >
      {Icon && <Icon size={15} aria-hidden className="shrink-0 opacity-80" />}
      <span className="min-w-0 grow">
        {label}
        {about && <span className="block text-xs text-muted">{about}</span>}
      </span>
      {checked && <span aria-hidden>✓</span>}
      {keys && <Kbd keys={keys} />}
    </Base.Item>
  )
}
