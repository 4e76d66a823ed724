// A button that opens a menu. Until the overlays are there, the button alone.
import type { LucideIcon } from 'lucide-react'
import { cloneElement, type ReactElement, useState } from 'react'
import { useStandIn } from './overlays'

export type MenuEntry =
  | 'line'
  | {
      label: string
      /** What the palette calls it, where the label is nothing without its menu: "Give the role Admin". */
      inFull?: string
      onSelect: () => void
      icon?: LucideIcon
      about?: string
      keys?: string
      look?: 'danger'
      checked?: boolean
      disabled?: boolean
      /** The person may not: shows why instead (permissions/use-refused). */
      refused?: (() => void) | null
    }

export interface MenuProps {
  entries: MenuEntry[]
  /** The button, without an `onClick` of its own. */
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
