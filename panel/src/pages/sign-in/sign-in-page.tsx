// The sign-in page, also the return address of providers and of the demo's link, with a code after the `#`, which
// browsers do not send.
import { Navigate, useNavigate, useSearch } from '@tanstack/react-router'
import { useCallback, useEffect, useRef, useState } from 'react'
import { wordsOf } from '../../api/errors'
import { useAct } from '../../api/use-act'
import { Card } from '../../app/card'
import { useFirstStart } from '../../app/first-start'
import { resetAbout, resetAsked, useMailWay } from '../../app/mail'
import { startSession } from '../../app/person'
import { Button } from '../../ui/button'
import { Field } from '../../ui/field'
import { TextInput } from '../../ui/inputs'
import { Notice } from '../../ui/notice'
import { ExchangeCode, RequestReset, refusal, safeNext, takeProviderSignIn } from './sign-in'
import { SignInForm } from './sign-in-form'

type Arrival =
  | { kind: 'fresh' }
  | { kind: 'code'; code: string; state: string | null }
  | { kind: 'refused'; text: string }
  | { kind: 'forgotten' }

/** Reads the part after the `#` once and removes it from the address and the history. */
function readArrival(hash: string): Arrival {
  const came = new URLSearchParams(hash.replace(/^#/, ''))
  if (came.has('error')) return { kind: 'refused', text: refusal(came) }
  const code = came.get('code')
  if (code) return { kind: 'code', code, state: came.get('state') }
  return { kind: came.has('forgot') ? 'forgotten' : 'fresh' }
}

export function SignInPage() {
  const { next } = useSearch({ from: '/sign-in' })
  const navigate = useNavigate()
  const { isOpen } = useFirstStart()
  const exchange = useAct(ExchangeCode)
  const [arrival] = useState(() => readArrival(location.hash))
  const [forgotten, setForgotten] = useState<string | null>(arrival.kind === 'forgotten' ? '' : null)
  const [refused, setRefused] = useState(arrival.kind === 'refused' ? arrival.text : null)
  const [challenge, setChallenge] = useState<string | null>(null)
  const goesTo = useRef(next)

  const goIn = useCallback(
    (person: number) => {
      startSession(person)
      void navigate({ href: safeNext(goesTo.current), replace: true } as never)
    },
    [navigate],
  )

  const take = useCallback(
    async (code: string) => {
      const { data, error } = await exchange({ code }, { quiet: true })
      const step = data?.exchangeSignInCode
      if (error) setRefused(wordsOf(error))
      else if (step?.challenge) setChallenge(step.challenge.token)
      else if (step?.user) goIn(step.user.id)
    },
    [goIn, exchange],
  )

  const started = useRef(false)
  useEffect(() => {
    if (started.current) return
    started.current = true
    if (location.hash) history.replaceState(history.state, '', location.pathname + location.search)
    // A code without state may be someone else's: the user decides (below).
    if (arrival.kind !== 'code' || arrival.state === null) return
    const pending = takeProviderSignIn()
    goesTo.current = pending.next ?? goesTo.current
    // The answer must match a request of this browser: another's code would sign in to their account.
    if (arrival.state === pending.state) void take(arrival.code)
    else setRefused('This sign-in was not started here. Start again.')
  }, [arrival, take])

  if (isOpen && arrival.kind === 'fresh') return <Navigate to="/first-start" replace />
  if (forgotten !== null) return <Forgotten email={forgotten} onBack={() => setForgotten(null)} />
  if (arrival.kind === 'code' && !refused && !challenge) {
    if (arrival.state === null) return <ByLink busy={exchange.pending} onGo={() => void take(arrival.code)} />
    return <Card title="Signing in…">{<Waiting />}</Card>
  }
  return (
    <Card title={challenge ? 'Second factor' : 'Sign in'}>
      {refused && (
        <div className="mb-4">
          <Notice>{refused}</Notice>
        </div>
      )}
      <SignInForm onSignedIn={goIn} onForgotten={setForgotten} challenge={challenge} next={next} />
    </Card>
  )
}

/** A link from the terminal. It waits for a click, so that no link silently signs anyone in to another's account. */
function ByLink({ busy, onGo }: { busy: boolean; onGo: () => void }) {
  return (
    <Card
      title="Sign in by link"
      about="You opened a link that signs you in. It works once, and only for a few minutes."
    >
      <Button look="primary" className="w-full" autoFocus busy={busy} onClick={onGo}>
        Sign in
      </Button>
    </Card>
  )
}

function Waiting() {
  return (
    <p role="status" className="text-muted">
      One moment.
    </p>
  )
}

function Forgotten({ email: known, onBack }: { email: string; onBack: () => void }) {
  const act = useAct(RequestReset)
  const way = useMailWay()
  const [email, setEmail] = useState(known)
  const [outcome, setOutcome] = useState<{ tone: 'ok' | 'danger'; text: string } | null>(null)
  const submit = async () => {
    const { error } = await act({ email }, { quiet: true })
    // Never reveals whether the account exists.
    setOutcome(
      error
        ? { tone: 'danger', text: wordsOf(error) }
        : {
            tone: 'ok',
            text: resetAsked(way),
          },
    )
  }
  return (
    <Card title="Forgotten your password?" about={resetAbout(way)}>
      <form
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault()
          void submit()
        }}
      >
        {way !== 'OFF' && (
          <Field label="E-mail address">
            <TextInput
              type="email"
              autoComplete="username"
              maxLength={254}
              required
              autoFocus
              value={email}
              onValue={setEmail}
            />
          </Field>
        )}
        {outcome && <Notice tone={outcome.tone}>{outcome.text}</Notice>}
        <div className="flex gap-2">
          <Button look="quiet" onClick={onBack}>
            Back
          </Button>
          {way !== 'OFF' && (
            <Button type="submit" look="primary" className="grow" busy={act.pending || way === null}>
              Send the link
            </Button>
          )}
        </div>
      </form>
    </Card>
  )
}
