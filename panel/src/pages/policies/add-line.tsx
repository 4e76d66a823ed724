// Writes a line into the text, with the names of roles and permissions offered.
import { useState } from 'react'
import { useOrg } from '../../app/organization'
import { Button } from '../../ui/button'
import { Field } from '../../ui/field'
import { Select } from '../../ui/inputs'
import { SuggestedInput } from '../../ui/suggested-input'
import { ROLE_NAMES, ROLES, type Role } from '../members/roles'
import { type Effect, setLine } from './lines'
import type { Permissions } from './queries'

interface Props {
  permissions: Permissions
  text: string
  onText: (text: string) => void
}

export function AddLine({ permissions, text, onText }: Props) {
  const { id: org } = useOrg()
  const [role, setRole] = useState<Role>('VIEWER')
  const [permission, setPermission] = useState('')
  const [effect, setEffect] = useState<Effect>('allow')
  return (
    <form
      className="mt-3 flex flex-wrap items-end gap-2"
      onSubmit={(event) => {
        event.preventDefault()
        const wanted = permission.trim()
        if (!wanted) return
        onText(setLine(text, org, { subject: role, permission: wanted, effect }))
        setPermission('')
      }}
    >
      <Field label="Role">
        <Select value={role} onValue={setRole} options={ROLE_OPTIONS} />
      </Field>
      <Field label="Permission" className="min-w-48 grow">
        <SuggestedInput
          value={permission}
          onValue={setPermission}
          suggestions={permissions.map((each) => each.permission)}
        />
      </Field>
      <Field label="Allow or deny">
        <Select value={effect} onValue={setEffect} options={EFFECT_OPTIONS} />
      </Field>
      <Button type="submit">Write the line</Button>
    </form>
  )
}

const ROLE_OPTIONS = ROLES.map((value) => ({ value, label: ROLE_NAMES[value] }))
const EFFECT_OPTIONS = [
  { value: 'allow', label: 'Allow' },
  { value: 'deny', label: 'Deny' },
] as const
