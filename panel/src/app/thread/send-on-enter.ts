// Enter sends a message, and Shift+Enter begins a new line, wherever one is written.
import type { KeyboardEvent } from 'react'

/** Said beside a field without a button that shows it. */
export const ENTER_SENDS = 'Enter sends, Shift+Enter begins a new line.'

export function sendOnEnter(event: KeyboardEvent<HTMLTextAreaElement>): void {
  if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
  event.preventDefault()
  // A form's own Ctrl+Enter must not send twice.
  event.stopPropagation()
  event.currentTarget.form?.requestSubmit()
}
