// Stops the whole organization: says what happens, and takes the reason that everybody will see.
import { useState } from 'react'
import { boundsOf, refusal } from '../api/bounds'
import { graphql } from '../api/graphql'
import { useAct } from '../api/use-act'
import { Field } from '../ui/field'
import { FormDialog } from '../ui/form-dialog'
import { TextInput } from '../ui/inputs'
import { useOrg } from './organization'
import { askStop } from './stop-store'

const Stop = graphql(`
  mutation StopOrganization($orgId: Id!, $reason: String!) {
    stopOrganization(orgId: $orgId, reason: $reason) { id stopped { at by reason userId } }
  }
`)

export default function StopDialog() {
  const org = useOrg()
  const act = useAct(Stop)
  const [reason, setReason] = useState('')
  const [asked, setAsked] = useState(false)
  const wrong = refusal(reason, boundsOf('stopOrganization.reason'))
  const close = () => askStop(false)
  const submit = async () => {
    setAsked(true)
    if (wrong) return
    const { error } = await act({ orgId: org.id, reason }, { said: 'All agents are on hold' })
    if (!error) close()
  }
  return (
    <FormDialog
      title="Stop all agents?"
      about={`Every agent of ${org.name} stops working at once. Running turns are cancelled; agents stay up and take nothing new until somebody releases the organization.`}
      action="Stop all agents"
      look="danger"
      busy={act.pending}
      onSubmit={submit}
      onClose={close}
    >
      <Field label="Reason" hint="Everybody in the organization sees it." error={asked ? wrong : null}>
        <TextInput value={reason} onValue={setReason} autoComplete="off" />
      </Field>
    </FormDialog>
  )
}
