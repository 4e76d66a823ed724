// A button that opens a menu. Only the button renders until the overlays have loaded.
import type { LucideIcon } from 'lucide-react'
import { cloneElement, type ReactElement, useState } from 'react'
import { useStandIn } from './overlays'

export type MenuEntry =
  | 'line'
  | {
      label: string
      /** The palette's label, if the menu's label is unclear on its own: "Give the role Admin". */
      inFull?: string
      onSelect: () => void
      icon?: LucideIcon
      about?: string
      keys?: string
      look?: 'danger'
      checked?: boolean
      disabled?: boolean
      /** Denied: explains why instead (permissions/gate). */
      refused?: (() => void) | null
    }

export interface MenuProps {
  entries: MenuEntry[]
  /** The button, without its own `onClick`. */
  trigger: ReactElement<{ onClick?: () => void; 'aria-haspopup'?: 'menu'; 'aria-expanded'?: boolean }>
  align?: 'start' | 'end'
}

export function Menu(props: MenuProps) {
  const [wanted, want] = useState(false)
  const { overlays, focused } = useStandIn(wanted)
  if (overlays) return <overlays.Menu {...props} startOpen={wanted} />
  return cloneElement(props.trigger, {
    ...focused,
    onClick: () => want(true),
    'aria-haspopup': 'menu',
    'aria-expanded': false,
  })
}
