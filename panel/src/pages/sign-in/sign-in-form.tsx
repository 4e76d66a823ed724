// Signs in with a provider, or with email and password, then the second factor. Shared by the page and the dialog over
// an expired session.
import { useEffect, useRef, useState } from 'react'
import { useQuery } from 'urql'
import { wordsOf } from '../../api/errors'
import { useAct } from '../../api/use-act'
import { Button } from '../../ui/button'
import { Field } from '../../ui/field'
import { TextInput } from '../../ui/inputs'
import { Notice } from '../../ui/notice'
import {
  CompleteSignIn,
  codeVariables,
  Providers,
  SignInMutation,
  type Step,
  startProviderSignIn,
} from './sign-in'

interface Props {
  onSignedIn: (userId: number) => void
  onForgotten?: (email: string) => void
  /** The challenge that a provider's sign-in ended with. */
  challenge?: string | null
  /** Set when signing in again as the same user. */
  email?: string
  /** The destination after a provider sends the browser back. */
  next?: string
}

export function SignInForm({
  onSignedIn,
  onForgotten,
  challenge: given = null,
  email: known = '',
  next,
}: Props) {
  const [challenge, setChallenge] = useState(given)
  useEffect(() => setChallenge(given), [given])
  const took = (step: Step | null | undefined) => {
    if (step?.challenge) setChallenge(step.challenge.token)
    else if (step?.user) onSignedIn(step.user.id)
  }
  if (challenge) return <SecondFactor challenge={challenge} onStep={took} onBack={() => setChallenge(null)} />
  return <Password known={known} next={next} onStep={took} onForgotten={onForgotten} />
}

function Password({
  known,
  next,
  onStep,
  onForgotten,
}: {
  known: string
  next?: string
  onStep: (step: Step | null | undefined) => void
  onForgotten?: (email: string) => void
}) {
  const [{ data }] = useQuery({ query: Providers })
  const act = useAct(SignInMutation)
  const [email, setEmail] = useState(known)
  const [password, setPassword] = useState('')
  const [refused, setRefused] = useState<string | null>(null)
  const providers = data?.signInProviders ?? []
  const submit = async () => {
    setRefused(null)
    const { data, error } = await act({ email, password }, { quiet: true })
    setPassword('')
    if (error) setRefused(wordsOf(error))
    else onStep(data?.signIn)
  }
  return (
    <div className="space-y-4">
      {providers.map(({ name, label, startPath }) => (
        <Button
          key={name}
          className="w-full"
          onClick={() => location.assign(`${startPath}?state=${startProviderSignIn(next)}`)}
        >
          Sign in with {label}
        </Button>
      ))}
      {providers.length > 0 && <p className="text-center text-xs text-faint">or with your password</p>}
      <form
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault()
          void submit()
        }}
      >
        <Field label="E-mail address">
          <TextInput
            type="email"
            name="email"
            autoComplete="username"
            maxLength={254}
            required
            autoFocus={!known}
            value={email}
            onValue={setEmail}
          />
        </Field>
        <Field
          label="Password"
          aside={
            onForgotten && (
              <button
                type="button"
                className="text-sm text-accent-text hover:underline"
                onClick={() => onForgotten(email)}
              >
                Forgotten?
              </button>
            )
          }
        >
          <TextInput
            type="password"
            name="password"
            autoComplete="current-password"
            maxLength={256}
            required
            autoFocus={Boolean(known)}
            value={password}
            onValue={setPassword}
          />
        </Field>
        {refused && <Notice>{refused}</Notice>}
        <Button type="submit" look="primary" className="w-full" busy={act.pending}>
          Sign in
        </Button>
      </form>
    </div>
  )
}

function SecondFactor({
  challenge,
  onStep,
  onBack,
}: {
  challenge: string
  onStep: (step: Step | null | undefined) => void
  onBack: () => void
}) {
  const act = useAct(CompleteSignIn)
  const [code, setCode] = useState('')
  const [refused, setRefused] = useState<string | null>(null)
  const sent = useRef('')
  const submit = async (typed: string) => {
    if (act.pending || sent.current === typed) return
    sent.current = typed
    setRefused(null)
    const { data, error } = await act({ challenge, ...codeVariables(typed) }, { quiet: true })
    if (error) {
      setRefused(wordsOf(error))
      sent.current = ''
    } else onStep(data?.completeSignIn)
  }
  return (
    <form
      className="space-y-4"
      onSubmit={(event) => {
        event.preventDefault()
        void submit(code)
      }}
    >
      <Field label="Code" hint="Six digits from your authenticator app, or one of your recovery codes.">
        <TextInput
          name="code"
          autoComplete="one-time-code"
          maxLength={40}
          required
          autoFocus
          spellCheck={false}
          className="font-mono"
          value={code}
          onValue={(next) => {
            setCode(next)
            // The sixth digit submits, typed or pasted; deleting down to six does not.
            if (/^[0-9]{6}$/.test(next) && next.length > code.length) void submit(next)
          }}
        />
      </Field>
      {refused && <Notice>{refused}</Notice>}
      <div className="flex gap-2">
        <Button look="quiet" onClick={onBack}>
          Back
        </Button>
        <Button type="submit" look="primary" className="grow" busy={act.pending}>
          Continue
        </Button>
      </div>
    </form>
  )
}
