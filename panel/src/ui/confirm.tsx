// Asks before an irreversible action. Reversible actions offer Undo instead (ui/toast-store).
import { type ReactNode, useState } from 'react'
import { Button } from './button'
import { Dialog } from './dialog'
import { Field } from './field'
import { TextInput } from './inputs'

interface Props {
  open: boolean
  onClose: () => void
  /** "Delete agent?" */
  title: string
  /** The consequences in plain words: what is deleted and what stays. */
  children?: ReactNode
  /** The button's label, a verb: "Delete agent". */
  action: string
  /** The name to type as confirmation, for irreversible actions with great loss. */
  typed?: string
  look?: 'danger' | 'primary'
  /** A milder alternative: "Pause instead". */
  other?: { label: string; run: () => void }
  busy?: boolean
  onConfirm: () => unknown
}

export function ConfirmDialog({
  open,
  onClose,
  title,
  children,
  action,
  typed,
  look = 'danger',
  other,
  busy,
  onConfirm,
}: Props) {
  const [text, setText] = useState('')
  const ready = !typed || text.trim() === typed.trim()
  const close = () => {
    setText('')
    onClose()
  }
  const confirm = async () => {
    if (!ready || busy) return
    await onConfirm()
    setText('')
  }
  return (
    <Dialog
      open={open}
      alert
      onClose={close}
      title={title}
      footer={
        <>
          <Button onClick={close}>Cancel</Button>
          {other && <Button onClick={other.run}>{other.label}</Button>}
          <Button look={look} disabled={!ready} busy={busy} onClick={() => void confirm()}>
            {action}
          </Button>
        </>
      }
    >
      <form
        className="space-y-3"
        onSubmit={(event) => {
          event.preventDefault()
          void confirm()
        }}
      >
        {children && <div className="text-muted">{children}</div>}
        {typed && (
          <Field
            label={
              <>
                Type <strong className="font-semibold text-ink">{typed}</strong> to confirm
              </>
            }
          >
            <TextInput value={text} onValue={setText} autoComplete="off" spellCheck={false} />
          </Field>
        )}
      </form>
    </Dialog>
  )
}
