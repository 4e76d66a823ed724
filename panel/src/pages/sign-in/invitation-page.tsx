// The target of an invitation's link. Continuing uses the link: a user who is signed in as the invitee has joined;
// others are asked for the missing details.
import { useNavigate } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { useQuery } from 'urql'
import { boundsOf, refusal } from '../../api/bounds'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useAddressSecret } from '../../app/address-secret'
import { Card } from '../../app/card'
import { startSession } from '../../app/person'
import { Button } from '../../ui/button'
import { Field } from '../../ui/field'
import { Form } from '../../ui/form'
import { TextInput } from '../../ui/inputs'
import { Notice } from '../../ui/notice'
import { say } from '../../ui/toast-store'
import { Visible } from '../../ui/visible'
import { ROLE_NAMES, type Role } from '../members/roles'
import { type Answer, nextStep, type Offer, offerText } from './invitation'
import { Incomplete } from './link'
import { SignInMutation } from './sign-in'
import { SignInForm } from './sign-in-form'

const Accept = graphql(`
  mutation AcceptInvitation($token: SecretString!, $name: String, $password: SecretString) {
    acceptInvitation(token: $token, name: $name, password: $password) { organizationId role user { email } }
  }
`)

const OfferQuery = graphql(`
  query InvitationOffer($token: SecretString!) {
    invitationOffer(token: $token) { organization inviter email role }
  }
`)

const TITLE = 'Join an organization'

/** Someone who has joined and is not signed in yet. */
interface Joined {
  org: number
  role: string
  email: string
  /** The pending second-factor challenge. */
  challenge: string | null
}

export function AcceptInvitationPage() {
  const token = useAddressSecret('token')
  const navigate = useNavigate()
  const [accept, signIn] = [useAct(Accept), useAct(SignInMutation)]
  const [name, setName] = useState('')
  const [password, setPassword] = useState('')
  const [{ step, problem, errors }, setAnswer] = useState<Answer>({
    step: { kind: 'ask' },
    problem: null,
    errors: {},
  })
  const [joined, setJoined] = useState<Joined | null>(null)
  const [{ data: found }] = useQuery({
    query: OfferQuery,
    variables: { token: token ?? '' },
    pause: !token,
  })
  const goTo = ({ org, role }: Pick<Joined, 'org' | 'role'>) => {
    say(`You have joined as ${ROLE_NAMES[role as Role]}`)
    void navigate({ to: '/o/$org', params: { org } })
  }
  const goIn = (to: Pick<Joined, 'org' | 'role'>, person: number) => {
    startSession(person)
    goTo(to)
  }
  if (!token) return <Incomplete title={TITLE} />
  if (joined) return <Enter joined={joined} onSignedIn={(person) => goIn(joined, person)} />
  const tooLong = name ? refusal(name, boundsOf('acceptInvitation.name')) : null
  const busy = accept.pending || signIn.pending
  const submit = async () => {
    if (busy) return
    const said = { name: name.trim() || null, password: password || null }
    const { data, error } = await accept({ token, ...said }, { quiet: true })
    if (error) setAnswer((before) => nextStep(before.step, error))
    const accepted = data?.acceptInvitation
    if (!accepted) return
    const { organizationId: org, role, user } = accepted
    // Without a password, the invitee's own session has joined.
    if (!password) return goTo({ org, role })
    const { email } = user
    const { data: answer } = await signIn({ email, password }, { quiet: true })
    const step = answer?.signIn
    if (step?.user) goIn({ org, role }, step.user.id)
    else setJoined({ org, role, email, challenge: step?.challenge?.token ?? null })
  }
  return (
    <Card title={TITLE} about={aboutOf(step, found?.invitationOffer)}>
      <Form className="space-y-4" noValidate onSubmit={() => void submit()}>
        {step.kind === 'new' && !step.named && (
          <Field label="Your name" error={errors.name ?? tooLong}>
            <TextInput autoComplete="name" autoFocus value={name} onValue={setName} />
          </Field>
        )}
        {step.kind !== 'ask' && (
          <Field
            label={step.kind === 'known' ? 'Password' : 'New password'}
            hint={step.kind === 'new' ? 'At least 8 characters.' : undefined}
            error={errors.password}
          >
            <TextInput
              type="password"
              autoComplete={step.kind === 'known' ? 'current-password' : 'new-password'}
              autoFocus={step.kind === 'known' || step.named}
              maxLength={256}
              value={password}
              onValue={setPassword}
            />
          </Field>
        )}
        {problem && <Notice>{problem}</Notice>}
        <Button type="submit" look="primary" className="w-full" busy={busy}>
          {step.kind === 'ask' ? 'Continue' : step.kind === 'known' ? 'Join' : 'Create the account and join'}
        </Button>
        {step.kind === 'known' && (
          <p className="text-sm text-muted">
            No password, because you sign in through another provider?{' '}
            <a href="/sign-in" className="link">
              Sign in
            </a>{' '}
            first, then open the invitation’s link again.
          </p>
        )}
      </Form>
    </Card>
  )
}

/** The signed-in user may be someone else: only the one who joined continues to the organization. */
function Enter({ joined, onSignedIn }: { joined: Joined; onSignedIn: (person: number) => void }) {
  const { org, email, challenge } = joined
  return (
    <Card title={challenge ? 'Second factor' : 'Sign in'} about="You have joined. Sign in to continue.">
      <SignInForm email={email} challenge={challenge} next={`/o/${org}`} onSignedIn={onSignedIn} />
    </Card>
  )
}

function aboutOf(step: Answer['step'], offer: Offer | null | undefined): ReactNode {
  if (step.kind === 'ask') {
    const text = offer
      ? offerText(offer)
      : 'This link makes you a member of the organization that invited you.'
    return (
      <Visible text={`${text} The link is only for you and works once: continue if you know who sent it.`} />
    )
  }
  if (step.kind === 'new') return 'You have no account yet. This creates one for the invited address.'
  return `${step.email ?? 'Your address'} has an account already. Enter its password to join.`
}
