// Password, second factor, linked accounts, sessions.
import { useState } from 'react'
import { wordsOf } from '../../api/errors'
import { fieldErrors } from '../../api/form-errors'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useViewer } from '../../app/viewer'
import { Button } from '../../ui/button'
import { Field } from '../../ui/field'
import { Form } from '../../ui/form'
import { TextInput } from '../../ui/inputs'
import { Notice } from '../../ui/notice'
import { Panel } from '../../ui/panel'
import { LinkedAccounts } from './linked-accounts'
import { SecondFactor } from './second-factor'
import { Sessions } from './sessions'

const ChangePassword = graphql(`
  mutation ChangePassword($current: SecretString!, $next: SecretString!) {
    changePassword(currentPassword: $current, newPassword: $next)
  }
`)

export function Security() {
  return (
    <>
      <SecondFactor />
      <Password />
      <LinkedAccounts />
      <Sessions />
    </>
  )
}

function Password() {
  const { user } = useViewer()
  const act = useAct(ChangePassword)
  const [current, setCurrent] = useState('')
  const [next, setNext] = useState('')
  const [errors, setErrors] = useState<Record<string, string>>({})
  const [problem, setProblem] = useState<string | null>(null)
  const submit = async () => {
    const { error } = await act(
      { current, next },
      { quiet: true, said: 'Your password is changed. Other sessions have ended.' },
    )
    const found = fieldErrors(error)
    setErrors(found)
    setProblem(error && Object.keys(found).length === 0 ? wordsOf(error) : null)
    setCurrent('')
    if (!error) setNext('')
  }
  return (
    <Panel
      title="Password"
      about="Changing it ends your other sessions. If you only sign in with a provider, set one with “Forgotten?” on the sign-in page."
    >
      <Form className="space-y-4 rounded-card border border-line p-4" onSubmit={() => void submit()}>
        <input type="email" name="username" autoComplete="username" value={user.email} readOnly hidden />
        <div className="grid gap-4 sm:grid-cols-2">
          <Field label="Current password" error={errors.currentPassword}>
            <TextInput
              type="password"
              autoComplete="current-password"
              maxLength={256}
              value={current}
              onValue={setCurrent}
            />
          </Field>
          <Field label="New password" hint="At least 8 characters." error={errors.newPassword}>
            <TextInput
              type="password"
              autoComplete="new-password"
              maxLength={256}
              value={next}
              onValue={setNext}
            />
          </Field>
        </div>
        {problem && <Notice>{problem}</Notice>}
        <div className="flex justify-end">
          <Button type="submit" busy={act.pending} disabled={current === '' || next === ''}>
            Change the password
          </Button>
        </div>
      </Form>
    </Panel>
  )
}
