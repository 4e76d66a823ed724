// Raises the current month's budget or hour's token limit. Turns that wait for it continue automatically.
import { useState } from 'react'
import { boundsOf, refusal } from '../../api/bounds'
import { placeErrors } from '../../api/form-errors'
import { graphql } from '../../api/graphql'
import { useFormAct } from '../../api/use-form-act'
import { Field } from '../../ui/field'
import { FormDialog } from '../../ui/form-dialog'
import { NumberInput } from '../../ui/inputs'
import { Notice } from '../../ui/notice'
import { useOrg } from '../organization'
import { moneyOf } from './money'
import { MoneyInput } from './money-input'

export const AllowSpending = graphql(`
  mutation AllowSpending($orgId: Id!, $input: AllowSpendingInput!) {
    allowSpending(orgId: $orgId, input: $input) {
      id spending { costMicro allowedMicro leasedMicro tokens }
    }
  }
`)

export interface AllowMoreProps {
  kind: 'money' | 'tokens'
  /** Whose limit: an agent's, or by default the organization's. */
  agent?: { id: number; name: string }
  /** The suggested amount, in millionths or tokens. */
  proposed?: number | null
  /** The approval that asks for it, which this closes. */
  approvalId?: number
  onClose: () => void
  onDone?: () => void
}

export function AllowMore({ kind, agent, proposed = null, approvalId, onClose, onDone }: AllowMoreProps) {
  const org = useOrg()
  const allow = useFormAct(AllowSpending)
  const [amount, setAmount] = useState<number | null>(proposed)
  const [wrong, setWrong] = useState<string | null>(null)
  const [problem, setProblem] = useState<string | null>(null)
  const field = kind === 'money' ? 'costMicro' : 'tokens'
  const submit = async () => {
    const refused =
      amount === null ? 'Type an amount.' : refusal(amount, boundsOf(`AllowSpendingInput.${field}`))
    setWrong(refused)
    if (refused || amount === null) return
    const said =
      kind === 'money'
        ? `${moneyOf(amount, org.currency)} more this month`
        : `${amount.toLocaleString()} tokens more for the next hour`
    const input = { agentId: agent?.id, approvalId, [field]: amount }
    const { error } = await allow({ orgId: org.id, input }, { quiet: true, said })
    if (!error) {
      onDone?.()
      return onClose()
    }
    const found = placeErrors(error, ['costMicro', 'tokens'])
    setWrong(found.errors[field] ?? null)
    setProblem(found.problem)
  }
  return (
    <FormDialog
      title={agent ? `Allow ${agent.name} more` : 'Allow all agents more'}
      about={
        kind === 'money'
          ? 'On top of this month’s budget. The budget itself stays as it is.'
          : 'On top of its tokens per hour, for the next 60 minutes.'
      }
      action="Allow it"
      may="organization.edit"
      busy={allow.pending}
      onSubmit={submit}
      onClose={onClose}
    >
      <Field label="How much more" hint="Turns that wait for it continue by themselves." error={wrong}>
        {kind === 'money' ? (
          <MoneyInput value={amount} onValue={setAmount} />
        ) : (
          <NumberInput unit="tokens" value={amount} onValue={setAmount} />
        )}
      </Field>
      {problem && <Notice>{problem}</Notice>}
    </FormDialog>
  )
}
