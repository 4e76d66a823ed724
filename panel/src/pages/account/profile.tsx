// Name, picture and e-mail address.
import type { CombinedError } from '@urql/core'
import { ImageUp } from 'lucide-react'
import { useRef, useState } from 'react'
import { fieldErrors } from '../../api/form-errors'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { mailed, useMailWay } from '../../app/mail'
import { useViewer } from '../../app/viewer'
import { Avatar } from '../../ui/avatar'
import { Badge } from '../../ui/badge'
import { Button } from '../../ui/button'
import { Field } from '../../ui/field'
import { Form } from '../../ui/form'
import { TextInput } from '../../ui/inputs'
import { Notice } from '../../ui/notice'
import { Panel } from '../../ui/panel'
import { pictureOf } from '../../ui/picture'
import { SectionField, SectionForm } from '../../ui/section-form'
import { useSection } from '../../ui/use-section'
import { Refused } from './refused'

const ChangeName = graphql(`
  mutation ChangeName($name: String!) { changeName(name: $name) { id name } }
`)
const SetAvatar = graphql(`
  mutation SetViewerAvatar($input: AvatarInput!) { setViewerAvatar(input: $input) { id avatarUrl } }
`)
const ChangeEmail = graphql(`
  mutation ChangeEmail($email: String!, $password: SecretString) { changeEmail(email: $email, password: $password) }
`)
const Confirm = graphql(`
  mutation RequestConfirmation { requestEmailConfirmation }
`)

export function Profile() {
  const { user } = useViewer()
  const rename = useAct(ChangeName)
  const form = useSection({
    stored: { name: user.name },
    bounds: { name: 'changeName.name' },
    save: ({ name }) => rename({ name: name ?? user.name }, { quiet: true }),
  })
  return (
    <>
      <Picture />
      <SectionForm title="Name" form={form}>
        <SectionField
          form={form}
          name="name"
          label="Your name"
          hint="As others see it: in conversations, decisions and the audit log."
        >
          <TextInput
            autoComplete="name"
            value={form.values.name}
            onValue={(name) => form.set('name', name)}
          />
        </SectionField>
      </SectionForm>
      <Email />
    </>
  )
}

function Picture() {
  const { user } = useViewer()
  const act = useAct(SetAvatar)
  const file = useRef<HTMLInputElement>(null)
  const [refused, setRefused] = useState<string | null>(null)
  const take = async (file: File | undefined) => {
    if (!file) return
    const { base64, problem } = await pictureOf(file)
    setRefused(problem)
    if (base64) await act({ input: { contentBase64: base64 } }, { said: 'Your picture is changed' })
  }
  return (
    <Panel title="Picture">
      <div className="flex flex-wrap items-center gap-4 rounded-card border border-line p-4">
        <Avatar name={user.name} url={user.avatarUrl} size="lg" />
        <div className="min-w-0 grow space-y-2">
          <div className="flex flex-wrap items-center gap-2">
            <input
              ref={file}
              type="file"
              hidden
              aria-label="Picture"
              accept="image/png,image/jpeg,image/webp,image/gif"
              onChange={(event) => {
                void take(event.target.files?.[0])
                event.target.value = ''
              }}
            />
            <Button icon={ImageUp} busy={act.pending} onClick={() => file.current?.click()}>
              {user.avatarUrl ? 'Choose another picture…' : 'Choose a picture…'}
            </Button>
            {user.avatarUrl && (
              <Button
                look="quiet"
                busy={act.pending}
                onClick={() =>
                  void act({ input: { contentBase64: null } }, { said: 'Your picture is removed' })
                }
              >
                Remove
              </Button>
            )}
          </div>
          <p className="text-xs text-muted">
            PNG, JPEG, WebP or GIF. This browser scales it down before sending it.
          </p>
          {refused && <Notice>{refused}</Notice>}
        </div>
      </div>
    </Panel>
  )
}

function Email() {
  const { user } = useViewer()
  const change = useAct(ChangeEmail)
  const confirm = useAct(Confirm)
  const way = useMailWay()
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const [outcome, setOutcome] = useState<{
    errors: Record<string, string>
    error?: CombinedError
    sentTo?: string
  }>({ errors: {} })
  const submit = async () => {
    const { error } = await change({ email, password: password || null }, { quiet: true })
    setPassword('')
    const errors = fieldErrors(error)
    if (!error) setOutcome({ errors: {}, sentTo: email })
    else setOutcome({ errors, error: Object.keys(errors).length === 0 ? error : undefined })
    if (!error) setEmail('')
  }
  return (
    <Panel title="E-mail address" about="For signing in, and for notifications.">
      <Form className="space-y-4 rounded-card border border-line p-4" onSubmit={() => void submit()}>
        <div className="flex flex-wrap items-center gap-2">
          <span className="font-medium">{user.email}</span>
          {user.emailConfirmed ? (
            <Badge tone="ok">Confirmed</Badge>
          ) : (
            <>
              <Badge tone="warn">Not confirmed</Badge>
              <Button
                size="sm"
                busy={confirm.pending}
                onClick={() => void confirm({}, { said: mailed(way, 'A link', user.email) })}
              >
                Send the link again
              </Button>
            </>
          )}
        </div>
        <div className="grid gap-4 sm:grid-cols-2">
          <Field label="New address" error={outcome.errors.email}>
            <TextInput type="email" autoComplete="email" maxLength={254} value={email} onValue={setEmail} />
          </Field>
          <Field label="Your password" error={outcome.errors.password}>
            <TextInput
              type="password"
              autoComplete="current-password"
              maxLength={256}
              value={password}
              onValue={setPassword}
            />
          </Field>
        </div>
        {outcome.error && <Refused error={outcome.error} />}
        {outcome.sentTo && (
          <Notice tone="ok">
            {mailed(way, 'A link', outcome.sentTo)}. The address changes when you open it.
          </Notice>
        )}
        <div className="flex justify-end">
          <Button type="submit" busy={change.pending} disabled={email.trim() === ''}>
            Change the address
          </Button>
        </div>
      </Form>
    </Panel>
  )
}
