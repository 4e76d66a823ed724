// Asks for a view's name.
import { useState } from 'react'
import { Field } from '../ui/field'
import { FormDialog } from '../ui/form-dialog'
import { TextInput } from '../ui/inputs'
import { refusalOf, type View } from './saved-views-list'

interface Props {
  views: readonly View[]
  /** The current name. Undefined for a new view. */
  now: string | undefined
  onSave: (name: string) => Promise<void>
  onClose: () => void
}

export default function NameView({ views, now, onSave, onClose }: Props) {
  const [name, setName] = useState(now ?? '')
  const [wrong, setWrong] = useState<string | null>(null)
  const [busy, setBusy] = useState(false)
  const submit = async () => {
    const refused = refusalOf(views, name, now)
    setWrong(refused)
    if (refused) return
    setBusy(true)
    await onSave(name)
  }
  return (
    <FormDialog
      title={now === undefined ? 'Save this view' : 'Rename the view'}
      about={
        now === undefined
          ? 'The current filters and order. Only you see it; to share it, copy the address.'
          : undefined
      }
      action="Save"
      busy={busy}
      onSubmit={submit}
      onClose={onClose}
    >
      <Field label="Name" error={wrong}>
        <TextInput
          value={name}
          onValue={setName}
          autoComplete="off"
          placeholder="Risky and about to expire"
        />
      </Field>
    </FormDialog>
  )
}
