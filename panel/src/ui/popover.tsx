// A button that opens something small beside it: an explanation, a few fields.
import { cloneElement, type ReactElement, type ReactNode, useState } from 'react'
import { useStandIn } from './overlays'

export interface PopoverProps {
  trigger: ReactElement<{ onClick?: () => void }>
  title: string
  children: ReactNode
  align?: 'start' | 'end'
}

export function Popover(props: PopoverProps) {
  const [wanted, want] = useState(false)
  const { overlays, focused } = useStandIn(wanted)
  if (overlays) return <overlays.Popover {...props} startOpen={wanted} />
  return cloneElement(props.trigger, { ...focused, onClick: () => want(true) })
}
