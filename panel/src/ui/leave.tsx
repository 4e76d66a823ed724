// Asks before a form with unsaved changes closes: with its page, its tab, its dialog, or what was open beside a list.
import { useState } from 'react'
import { Button } from './button'
import { Dialog } from './dialog'

interface Place {
  pathname: string
  search: object
}

/** Parts of an address that a form lives in. Other changes of the address keep it open. */
const PARTS = ['tab', 'peek']
/** Those of a dialog. */
export const DIALOG_PARTS = [...PARTS, 'open']

/** Whether a form that is shown at one address is gone at the other. */
export function leaves(from: Place, to: Place, parts: readonly string[] = PARTS): boolean {
  const part = (place: Place, name: string) => String((place.search as Record<string, unknown>)[name] ?? '')
  return from.pathname !== to.pathname || parts.some((name) => part(from, name) !== part(to, name))
}

interface Props {
  /** What the form is called. */
  title: string
  leaving: { status: 'idle' | 'blocked'; proceed?: () => void; reset?: () => void }
  /** Answers whether it was saved. Without: it can only be left. */
  save?: () => Promise<boolean>
}

export function LeaveDialog({ title, leaving: { status, proceed, reset }, save }: Props) {
  const [saving, setSaving] = useState(false)
  const stay = () => reset?.()
  const saveFirst = async () => {
    setSaving(true)
    const saved = await save?.()
    setSaving(false)
    // The refusal is shown at its field, so the person stays there.
    if (saved) proceed?.()
    else stay()
  }
  return (
    <Dialog
      open={status === 'blocked'}
      alert
      onClose={stay}
      title="Leave without saving?"
      about={`What you ${save ? 'changed' : 'typed'} under “${title}” is not saved yet.`}
      footer={
        <>
          <Button look="quiet" onClick={() => proceed?.()}>
            Leave without saving
          </Button>
          <Button onClick={stay}>Stay</Button>
          {save && (
            <Button look="primary" busy={saving} onClick={() => void saveFirst()}>
              Save and leave
            </Button>
          )}
        </>
      }
    />
  )
}
