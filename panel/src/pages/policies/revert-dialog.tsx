// Puts an earlier version in force again, after its effect was shown.
import { useState } from 'react'
import { boundsOf, refusal } from '../../api/bounds'
import { wordsOf } from '../../api/errors'
import { fieldErrors } from '../../api/form-errors'
import { graphql } from '../../api/graphql'
import { useFormAct } from '../../api/use-form-act'
import { useOrg } from '../../app/organization'
import { Field } from '../../ui/field'
import { FormDialog } from '../../ui/form-dialog'
import { TextInput } from '../../ui/inputs'
import { say } from '../../ui/toast-store'
import { Changes } from './changes'
import { LineDiff } from './line-diff'
import type { CellChange } from './queries'

const Revert = graphql(`
  mutation RevertPolicy($orgId: Id!, $input: RevertPolicyInput!) {
    revertPolicy(orgId: $orgId, input: $input) { version }
  }
`)

interface Props {
  id: number
  /** The version in force. */
  version: string
  before: string
  text: string
  changes: readonly CellChange[]
  onClose: () => void
}

export function RevertDialog({ id, version, before, text, changes, onClose }: Props) {
  const org = useOrg()
  // The one that the reader saw first: a version published meanwhile is a conflict.
  const [seen] = useState(version)
  const revert = useFormAct(Revert)
  const [reason, setReason] = useState('')
  const [problem, setProblem] = useState<string | null>(null)
  const submit = async () => {
    const wrong = refusal(reason, boundsOf('RevertPolicyInput.reason'))
    setProblem(wrong)
    if (wrong) return
    const input = { version: seen, versionId: id, reason }
    const { error } = await revert({ orgId: org.id, input }, { quiet: true })
    if (error) return setProblem(fieldErrors(error).reason ?? wordsOf(error))
    say(`Version ${id} is in force again`)
    onClose()
  }
  return (
    <FormDialog
      title={`Go back to version ${id}`}
      about="Its text becomes a new version, in force at once."
      width="lg"
      action="Go back"
      busy={revert.pending}
      onSubmit={submit}
      onClose={onClose}
    >
      <LineDiff before={before} after={text} label="Changed lines" />
      <Changes changes={changes} />
      <Field label="Reason" hint="The history shows it." error={problem}>
        <TextInput value={reason} onValue={setReason} autoComplete="off" />
      </Field>
    </FormDialog>
  )
}
