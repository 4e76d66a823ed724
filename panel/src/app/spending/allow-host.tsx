// Adds a host that all agents of the organization may reach.
import { useState } from 'react'
import { boundsOf, refusal } from '../../api/bounds'
import { placeErrors } from '../../api/form-errors'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { Field } from '../../ui/field'
import { FormDialog } from '../../ui/form-dialog'
import { NumberInput, TextInput } from '../../ui/inputs'
import { Notice } from '../../ui/notice'
import { useOrg } from '../organization'
import { HTTPS, hostAndPort } from './host'

export const AllowHost = graphql(`
  mutation AllowHost($orgId: Id!, $input: AllowHostInput!) {
    allowHost(orgId: $orgId, input: $input) { id allowedHosts { id host port createdAt createdByName } }
  }
`)

interface Props {
  /** The host an agent requested or was denied. */
  host?: string
  port?: number
  /** The agent's request, which this approves. */
  approvalId?: number
  onClose: () => void
  onDone?: () => void
}

export function AllowHostDialog({
  host: asked = '',
  port: askedPort = HTTPS,
  approvalId,
  onClose,
  onDone,
}: Props) {
  const { id: orgId } = useOrg()
  const allow = useAct(AllowHost)
  const [host, setHost] = useState(asked)
  const [port, setPort] = useState<number | null>(askedPort)
  const [errors, setErrors] = useState<Record<string, string>>({})
  const [problem, setProblem] = useState<string | null>(null)
  const submit = async () => {
    const wrong = {
      host: refusal(host.trim(), boundsOf('AllowHostInput.host')),
      port: refusal(port ?? Number.NaN, boundsOf('AllowHostInput.port')),
    }
    const found = Object.entries(wrong).flatMap(([name, text]) => (text ? [[name, text]] : []))
    setErrors(Object.fromEntries(found))
    if (found.length > 0) return
    const input = { host: host.trim(), port: port ?? HTTPS, approvalId }
    const said = `Agents may reach ${hostAndPort(input.host, input.port)}`
    const { error } = await allow({ orgId, input }, { quiet: true, said })
    if (!error) {
      onDone?.()
      return onClose()
    }
    const refused = placeErrors(error, ['host', 'port'])
    setErrors(refused.errors)
    setProblem(refused.problem)
  }
  return (
    <FormDialog
      title={asked ? `Allow ${hostAndPort(asked, askedPort)}` : 'Allow a host'}
      about="All agents of the organization may then reach it without asking. They can send any of their data to it."
      action="Allow it"
      may="network.edit"
      busy={allow.pending}
      onSubmit={submit}
      onClose={onClose}
    >
      <Field
        label="Host"
        doc="approvals.md#what-is-asked"
        hint="A name such as api.example.com, or *.example.com for all names below it. No address in digits."
        error={errors.host}
      >
        <TextInput
          value={host}
          onValue={setHost}
          readOnly={approvalId !== undefined}
          autoComplete="off"
          autoCapitalize="off"
          spellCheck={false}
        />
      </Field>
      <Field label="Port" hint="443 is https." error={errors.port}>
        <NumberInput value={port} onValue={setPort} readOnly={approvalId !== undefined} />
      </Field>
      {problem && <Notice>{problem}</Notice>}
    </FormDialog>
  )
}
