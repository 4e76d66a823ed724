// Stops the whole organization: explains the consequences and asks for a reason, which everyone will see.
import { useState } from 'react'
import { boundsOf, refusal } from '../api/bounds'
import { graphql } from '../api/graphql'
import { useAct } from '../api/use-act'
import { useLive } from '../api/use-live'
import { Field } from '../ui/field'
import { FormDialog } from '../ui/form-dialog'
import { TextInput } from '../ui/inputs'
import { endsInWords } from './cut-words'
import { useOrg } from './organization'
import { askStop } from './stop-store'

const Stop = graphql(`
  mutation StopOrganization($orgId: Id!, $reason: String!) {
    stopOrganization(orgId: $orgId, reason: $reason) { id stopped { at by reason userId } }
  }
`)

const Ends = graphql(`
  query StopAllEnds($orgId: Id!) { overview(orgId: $orgId) { begunTurns waitingRequests } }
`)

export default function StopDialog() {
  const org = useOrg()
  const act = useAct(Stop)
  const [reason, setReason] = useState('')
  const [asked, setAsked] = useState(false)
  const { data } = useLive({ query: Ends, variables: { orgId: org.id }, on: ['TURN', 'APPROVAL'] })
  const words = endsInWords(data?.overview?.begunTurns ?? 0, data?.overview?.waitingRequests ?? 0)
  const ends = words ? `: this ${words}` : ''
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
      about={`Every agent of ${org.name} stops working at once${ends}. Agents stay up and take nothing new until the organization is released.`}
      action="Stop all agents"
      look="danger"
      busy={act.pending}
      onSubmit={submit}
      onClose={close}
    >
      <Field label="Reason" hint="All members of the organization see it." error={asked ? wrong : null}>
        <TextInput value={reason} onValue={setReason} autoComplete="off" />
      </Field>
    </FormDialog>
  )
}
