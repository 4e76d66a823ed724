// A dialog, loaded when the first one opens. Use it for what must be answered before anything else; additional details
// belong in a peek beside the list (ui/peek).
import type { ReactNode, RefObject } from 'react'
import { useOverlays } from './overlays'

export interface DialogProps {
  open: boolean
  onClose: () => void
  title: string
  /** A sentence below the title. */
  about?: ReactNode
  /** Buttons; the primary action comes last. */
  footer?: ReactNode
  width?: 'sm' | 'md' | 'lg'
  /** Ignores Esc and outside clicks and has no X, to protect content that would be lost. */
  firm?: boolean
  /** A question (role alertdialog): outside clicks do not answer it, and Esc cancels. */
  alert?: boolean
  /** No header or padding: the content supplies its own. The title is still read out. */
  bare?: boolean
  children?: ReactNode
  initialFocus?: RefObject<HTMLElement | null>
}

export function Dialog(props: DialogProps) {
  const overlays = useOverlays(props.open)
  if (!overlays || !props.open) return null
  return <overlays.Dialog {...props} />
}
