// The first start: makes the first person and organization, with the one-time code from the service's log. The code
// follows the `#` of the address, which browsers do not send, or is typed.
import { useNavigate } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useAddressSecret } from '../../app/address-secret'
import { Card } from '../../app/card'
import { useFirstStart } from '../../app/first-start'
import { startSession } from '../../app/person'
import { Button, buttonClass } from '../../ui/button'
import { Field } from '../../ui/field'
import { Form } from '../../ui/form'
import { TextInput } from '../../ui/inputs'
import { Notice } from '../../ui/notice'
import { type Answer, EMPTY, outcome, type Values, wrongFields } from './first-start'

const Complete = graphql(`
  mutation CompleteFirstStart($input: CompleteFirstStartInput!) {
    completeFirstStart(input: $input, cookie: true) { user { id } }
  }
`)

const TITLE = 'Set up Muster'

interface InputProps {
  type?: string
  autoComplete: string
  autoFocus?: boolean
  maxLength?: number
  spellCheck?: boolean
}

const CODE: InputProps = { autoComplete: 'off', spellCheck: false }
const EMAIL: InputProps = { type: 'email', autoComplete: 'username', maxLength: 254 }
const PASSWORD: InputProps = { type: 'password', autoComplete: 'new-password', maxLength: 256 }

export function FirstStartPage() {
  const code = useAddressSecret('code') ?? ''
  const { isOpen, loading } = useFirstStart()
  const navigate = useNavigate()
  const [end, setEnd] = useState<'taken' | 'made' | null>(null)
  const goIn = (person: number) => {
    setEnd('made')
    startSession(person)
    void navigate({ to: '/', replace: true })
  }
  if (end === 'made') return <Waiting />
  if (end === 'taken' || isOpen === false) return <Taken />
  if (loading) return <Waiting />
  return <Founding code={code} onMade={goIn} onTaken={() => setEnd('taken')} />
}

interface FoundingProps {
  code: string
  onMade: (person: number) => void
  onTaken: () => void
}

function Founding({ code, onMade, onTaken }: FoundingProps) {
  const complete = useAct(Complete)
  const [values, setValues] = useState<Values>({ ...EMPTY, code })
  const [{ errors, problem }, setAnswer] = useState<Answer>({ errors: {}, problem: null })
  // A code that came with the address is shown only once it was refused.
  const [asksForCode, setAsksForCode] = useState(!code)
  const show = (answer: Answer) => {
    setAnswer(answer)
    if (answer.errors.code) setAsksForCode(true)
  }
  const submit = async () => {
    if (complete.pending) return
    const wrong = wrongFields(values)
    show({ errors: wrong, problem: null })
    if (Object.keys(wrong).length > 0) return
    const { data, error } = await complete({ input: values }, { quiet: true })
    const person = data?.completeFirstStart?.user
    if (person) return onMade(person.id)
    const answer = outcome(error)
    if (answer.isTaken) onTaken()
    else show(answer)
  }
  const field = (name: keyof Values, label: string, input: InputProps, hint?: ReactNode) => (
    <Field label={label} hint={hint} error={errors[name]}>
      <TextInput
        name={name}
        required
        value={values[name]}
        onValue={(value) => setValues((before) => ({ ...before, [name]: value }))}
        {...input}
      />
    </Field>
  )
  return (
    <Card
      title={TITLE}
      about="There are no accounts yet. This makes yours, and your organization with you as its OWNER."
    >
      <Form className="space-y-4" noValidate onSubmit={() => void submit()}>
        {asksForCode && field('code', 'Code', { ...CODE, autoFocus: !code }, <WhereCodeIs />)}
        {field('name', 'Your name', { autoComplete: 'name', autoFocus: Boolean(code) })}
        {field('email', 'E-mail address', EMAIL)}
        {field('password', 'Password', PASSWORD, 'At least 8 characters.')}
        {field('organizationName', 'Name of your organization', { autoComplete: 'organization' })}
        {problem && <Notice>{problem}</Notice>}
        <Button type="submit" look="primary" className="w-full" busy={complete.pending}>
          Set up
        </Button>
      </Form>
    </Card>
  )
}

function Waiting() {
  return (
    <Card title={TITLE}>
      <p role="status" className="text-muted">
        Loading…
      </p>
    </Card>
  )
}

function WhereCodeIs() {
  return (
    <>
      The newest line <code>first_start.open</code> of the service’s log has it, after <code>#code=</code>.
    </>
  )
}

/** Signing in loads the panel again: what it has read says that there are no accounts. */
function Taken() {
  return (
    <Card title="Muster is set up" about="This installation has its first person already.">
      <a href="/sign-in" className={buttonClass('primary', 'md', 'w-full')}>
        Sign in
      </a>
    </Card>
  )
}
