// A dialog with a form in it: Cancel, and the button that sends the form. Enter in a field sends it too, and Ctrl+Enter in a text of several lines. While one try
// is under way, another does nothing.
import { type ReactNode, useId } from 'react'
import { Gate } from '../permissions/gate'
import type { Permission } from '../permissions/names'
import { Button } from './button'
import { Dialog, type DialogProps } from './dialog'

interface Props extends Pick<DialogProps, 'title' | 'about' | 'width' | 'onClose'> {
  /** The button that sends it: a verb, "Create the agent". */
  action: string
  look?: 'primary' | 'danger'
  /** The permission that sending takes, if people without it can open the dialog. */
  may?: Permission
  busy: boolean
  onSubmit: () => unknown
  /** `off` keeps the browser from filling in what it remembers. */
  autoComplete?: 'off'
  children: ReactNode
}

export function FormDialog({
  action,
  look = 'primary',
  may,
  busy,
  onSubmit,
  autoComplete,
  children,
  ...dialog
}: Props) {
  const form = useId()
  const send = (
    <Button look={look} type="submit" form={form} busy={busy}>
      {action}
    </Button>
  )
  return (
    <Dialog
      open
      {...dialog}
      footer={
        <>
          <Button onClick={dialog.onClose}>Cancel</Button>
          {may ? <Gate may={may}>{send}</Gate> : send}
        </>
      }
    >
      <form
        id={form}
        className="space-y-4"
        noValidate
        autoComplete={autoComplete}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
          event.preventDefault()
          event.currentTarget.requestSubmit()
        }}
        onSubmit={(event) => {
          event.preventDefault()
          if (!busy) void onSubmit()
        }}
      >
        {children}
      </form>
    </Dialog>
  )
}
