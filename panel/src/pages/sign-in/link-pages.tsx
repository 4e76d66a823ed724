// The targets of links in mails. The token follows the `#`, which browsers do not send, and is used only when the user
// presses the button, because mail scanners open links.
import { useState } from 'react'
import type { CombinedError } from 'urql'
import { problemOf, wordsOf } from '../../api/errors'
import { fieldErrors } from '../../api/form-errors'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useAddressSecret } from '../../app/address-secret'
import { Card } from '../../app/card'
import { Button } from '../../ui/button'
import { Field } from '../../ui/field'
import { Form } from '../../ui/form'
import { TextInput } from '../../ui/inputs'
import { Notice } from '../../ui/notice'
import { Again, Done, Incomplete } from './link'

const Reset = graphql(`
  mutation ResetPassword($token: SecretString!, $password: SecretString!) {
    resetPassword(token: $token, newPassword: $password)
  }
`)
const Confirm = graphql(`
  mutation ConfirmEmail($token: SecretString!) { confirmEmail(token: $token) }
`)

export function ConfirmEmailPage() {
  const token = useAddressSecret('token')
  const act = useAct(Confirm)
  const [error, setError] = useState<CombinedError>()
  const [done, setDone] = useState(false)
  if (!token) return <Incomplete title="Confirm your address" />
  if (done) return <Done title="Your address is confirmed">You can go on in Muster.</Done>
  const submit = async () => {
    const { error } = await act({ token }, { quiet: true })
    setError(error)
    setDone(!error)
  }
  return (
    <Card title="Confirm your address" about="This confirms that the mailbox the link was sent to is yours.">
      <div className="space-y-4">
        {error && <Notice>{wordsOf(error)}</Notice>}
        <Button look="primary" className="w-full" busy={act.pending} onClick={() => void submit()}>
          Confirm
        </Button>
      </div>
    </Card>
  )
}

export function ResetPasswordPage() {
  const token = useAddressSecret('token')
  const act = useAct(Reset)
  const [password, setPassword] = useState('')
  const [error, setError] = useState<CombinedError>()
  const [done, setDone] = useState(false)
  if (!token) return <Incomplete title="Set a new password" again />
  if (done)
    return (
      <Done title="Your new password is set">
        All your sessions have ended. Sign in with the new password.
      </Done>
    )
  const errors = fieldErrors(error)
  const submit = async () => {
    const { error } = await act({ token, password }, { quiet: true })
    setError(error)
    setDone(!error)
  }
  return (
    <Card title="Set a new password" about="A new password ends all your sessions.">
      <Form className="space-y-4" onSubmit={() => void submit()}>
        <Field label="New password" hint="At least 8 characters." error={errors.newPassword}>
          <TextInput
            type="password"
            autoComplete="new-password"
            maxLength={256}
            required
            autoFocus
            value={password}
            onValue={setPassword}
          />
        </Field>
        {error && !errors.newPassword && <Notice>{wordsOf(error)}</Notice>}
        {problemOf(error)?.code === 'LINK_INVALID' && <Again />}
        <Button type="submit" look="primary" className="w-full" busy={act.pending}>
          Set password
        </Button>
      </Form>
    </Card>
  )
}
