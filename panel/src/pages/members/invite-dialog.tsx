// Invites someone.
import { useState } from 'react'
import { boundsOf, refusal } from '../../api/bounds'
import { placeErrors } from '../../api/form-errors'
import { graphql } from '../../api/graphql'
import { useFormAct } from '../../api/use-form-act'
import { inviteAbout, useMailWay } from '../../app/mail'
import { useOrg } from '../../app/organization'
import { RadioGroup } from '../../ui/choices'
import { Field } from '../../ui/field'
import { FormDialog } from '../../ui/form-dialog'
import { TextInput } from '../../ui/inputs'
import { Notice } from '../../ui/notice'
import { addressRefusal } from './address'
import { ROLE_MEANINGS, ROLE_NAMES, type Role, rolesUpTo } from './roles'

const Invite = graphql(`
  mutation InviteMember($orgId: Id!, $input: InviteMemberInput!) {
    inviteMember(orgId: $orgId, input: $input) { id email }
  }
`)

export function InviteDialog({ onClose, onInvited }: { onClose: () => void; onInvited: () => void }) {
  const org = useOrg()
  const way = useMailWay()
  const invite = useFormAct(Invite)
  const [email, setEmail] = useState('')
  const [role, setRole] = useState<Role>('OPERATOR')
  const [errors, setErrors] = useState<Record<string, string>>({})
  const [problem, setProblem] = useState<string | null>(null)
  const submit = async () => {
    const wrong = refusal(email.trim(), boundsOf('InviteMemberInput.email')) ?? addressRefusal(email)
    if (wrong) return setErrors({ email: wrong })
    const input = { email: email.trim(), role }
    const { error } = await invite({ orgId: org.id, input }, { quiet: true, said: `Invited ${input.email}` })
    if (!error) return onInvited()
    const found = placeErrors(error, ['email', 'role'])
    setErrors(found.errors)
    setProblem(found.problem)
  }
  return (
    <FormDialog
      title={`Invite a member to ${org.name}`}
      about={inviteAbout(way)}
      action={way === 'SENT' ? 'Send the invitation' : 'Invite'}
      busy={invite.pending}
      onSubmit={submit}
      onClose={onClose}
    >
      <Field label="E-mail address" error={errors.email}>
        <TextInput type="email" value={email} onValue={setEmail} autoComplete="off" />
      </Field>
      <RadioGroup
        label="Role"
        doc="panel.md#permissions"
        value={role}
        onValue={setRole}
        error={errors.role ?? null}
        options={rolesUpTo(org.viewerRole).map((value) => ({
          value,
          label: ROLE_NAMES[value],
          hint: ROLE_MEANINGS[value],
        }))}
      />
      {problem && <Notice>{problem}</Notice>}
    </FormDialog>
  )
}
