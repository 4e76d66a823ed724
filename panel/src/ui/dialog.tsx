// A dialog. Nothing of it is loaded until one opens. It carries what must be answered before anything else; what only
// adds to the page belongs beside it (ui/peek).
import type { ReactNode, RefObject } from 'react'
import { useOverlays } from './overlays'

export interface DialogProps {
  open: boolean
  onClose: () => void
  title: string
  /** A sentence below the title. */
  about?: ReactNode
  /** Buttons; the one that acts comes last. */
  footer?: ReactNode
  width?: 'sm' | 'md' | 'lg'
  /** Esc, a click outside and an X don't close it: for what would be lost. */
  firm?: boolean
  /** Interrupts with a question (role alertdialog): a click outside does not answer it, Esc takes the way back. */
  alert?: boolean
  /** No header and no padding: the content brings its own. The title is still read out. */
  bare?: boolean
  children?: ReactNode
  initialFocus?: RefObject<HTMLElement | null>
}

export function Dialog(props: DialogProps) {
  const overlays = useOverlays(props.open)
  if (!overlays || !props.open) return null
  return <overlays.Dialog {...props} />
}
