// A dialog with a form, its submit button and Cancel. Enter in a field submits, as does Ctrl+Enter in multi-line text.
// Ignores submissions while one is pending. Once something was typed, closing asks first, except through Cancel.
import { useBlocker } from '@tanstack/react-router'
import { type ReactNode, useId, useRef, useState } from 'react'
import { Gate } from '../permissions/gate'
import type { Permission } from '../permissions/names'
import { Button } from './button'
import { Dialog, type DialogProps } from './dialog'
import { Form } from './form'
import { DIALOG_PARTS, LeaveDialog, leaves } from './leave'

interface Props extends Pick<DialogProps, 'title' | 'about' | 'width' | 'onClose'> {
  /** The submit button's label, a verb: "Create the agent". */
  action: string
  look?: 'primary' | 'danger'
  /** The permission needed to submit, if people without it can open the dialog. */
  may?: Permission
  busy: boolean
  onSubmit: () => unknown
  /** `off` stops the browser from autofilling. */
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
  onClose,
  ...dialog
}: Props) {
  const form = useId()
  const [typed, setTyped] = useState(false)
  const [closing, setClosing] = useState(false)
  // Submitting or closing: a navigation that this causes must not ask.
  const goes = useRef(false)
  const left = useBlocker({
    shouldBlockFn: ({ current, next }) => !goes.current && leaves(current, next, DIALOG_PARTS),
    enableBeforeUnload: true,
    disabled: !typed,
    withResolver: true,
  })
  const close = () => {
    goes.current = true
    onClose()
  }
  const stay = () => setClosing(false)
  const submit = async () => {
    goes.current = true
    await onSubmit()
    // Still open after a refusal.
    goes.current = false
  }
  const send = (
    <Button look={look} type="submit" form={form} busy={busy}>
      {action}
    </Button>
  )
  return (
    <Dialog
      open
      {...dialog}
      onClose={() => (typed ? setClosing(true) : close())}
      footer={
        <>
          <Button onClick={close}>Cancel</Button>
          {may ? <Gate may={may}>{send}</Gate> : send}
        </>
      }
    >
      <Form
        id={form}
        className="space-y-4"
        noValidate
        autoComplete={autoComplete}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
          event.preventDefault()
          event.currentTarget.requestSubmit()
        }}
        onChange={() => setTyped(true)}
        onSubmit={() => !busy && void submit()}
      >
        {children}
      </Form>
      <LeaveDialog
        title={dialog.title}
        leaving={closing ? { status: 'blocked', proceed: close, reset: stay } : left}
      />
    </Dialog>
  )
}
