// Asks before a form with unsaved changes closes: with its page, tab, dialog or peek.
import { useState } from 'react'
import { Button } from './button'
import { Dialog } from './dialog'

interface Address {
  pathname: string
  search: object
}

/** Search parameters that close a form when they change. Other parameters keep it open. */
const PARTS = ['tab', 'peek']
/** The same for a dialog. */
export const DIALOG_PARTS = [...PARTS, 'open']

/** Whether navigating between these locations closes a form. */
export function leaves(from: Address, to: Address, parts: readonly string[] = PARTS): boolean {
  const part = (place: Address, name: string) => String((place.search as Record<string, unknown>)[name] ?? '')
  return from.pathname !== to.pathname || parts.some((name) => part(from, name) !== part(to, name))
}

interface Props {
  /** Names the form. */
  title: string
  leaving: { status: 'idle' | 'blocked'; proceed?: () => void; reset?: () => void }
  /** Resolves to whether it was saved. Omit it for forms that can only be discarded. */
  save?: () => Promise<boolean>
}

export function LeaveDialog({ title, leaving: { status, proceed, reset }, save }: Props) {
  const [saving, setSaving] = useState(false)
  const stay = () => reset?.()
  const saveFirst = async () => {
    setSaving(true)
    const saved = await save?.()
    setSaving(false)
    // A refusal shows at its field, so stay here.
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
