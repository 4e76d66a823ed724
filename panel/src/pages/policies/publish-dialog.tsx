// Puts the draft in force, with a reason.
import { useState } from 'react'
import { boundsOf, refusal } from '../../api/bounds'
import { problemOf, wordsOf } from '../../api/errors'
import { fieldErrors } from '../../api/form-errors'
import { graphql } from '../../api/graphql'
import { useFormAct } from '../../api/use-form-act'
import { useOrg } from '../../app/organization'
import { Field } from '../../ui/field'
import { FormDialog } from '../../ui/form-dialog'
import { TextInput } from '../../ui/inputs'
import { Notice } from '../../ui/notice'
import { say } from '../../ui/toast-store'
import { Changes } from './changes'
import { LineDiff } from './line-diff'
import type { CellChange } from './queries'

const Edit = graphql(`
  mutation EditPolicy($orgId: Id!, $input: EditPolicyInput!) {
    editPolicy(orgId: $orgId, input: $input) { version }
  }
`)

interface Props {
  /** Instead of the words for a draft. */
  title?: string
  action?: string
  version: string
  before: string
  text: string
  changes: readonly CellChange[]
  onClose: () => void
  onPublished: () => void
  /** Another version was published first. */
  onConflict: () => void
}

export function PublishDialog(props: Props) {
  const { title = 'Publish the draft', action = 'Publish', version, before, text, changes } = props
  const { onClose, onPublished, onConflict } = props
  const org = useOrg()
  const edit = useFormAct(Edit)
  const [reason, setReason] = useState('')
  const [wrong, setWrong] = useState<string | null>(null)
  const [problem, setProblem] = useState<string | null>(null)
  const submit = async () => {
    setProblem(null)
    const refused = refusal(reason, boundsOf('EditPolicyInput.reason'))
    setWrong(refused)
    if (refused) return
    const { error } = await edit({ orgId: org.id, input: { version, text, reason } }, { quiet: true })
    if (!error) {
      say('Rules published')
      return onPublished()
    }
    if (problemOf(error)?.code === 'CONFLICT') return onConflict()
    const atReason = fieldErrors(error).reason
    setWrong(atReason ?? null)
    setProblem(atReason ? null : wordsOf(error))
  }
  return (
    <FormDialog
      title={title}
      about="It comes into force at once, for everyone in the organization."
      width="lg"
      action={action}
      may="policy.edit"
      busy={edit.pending}
      onSubmit={submit}
      onClose={onClose}
    >
      <LineDiff before={before} after={text} label="Changed lines" />
      <Changes changes={changes} />
      <Field label="Reason" hint="The history shows it." error={wrong}>
        <TextInput value={reason} onValue={setReason} autoComplete="off" />
      </Field>
      {problem && <Notice>{problem}</Notice>}
    </FormDialog>
  )
}
