// The steps of signing in. The answers set the session cookie; scripts never hold it.
import { graphql, type ResultOf } from '../../api/graphql'

export const SignInMutation = graphql(`
  mutation SignIn($email: String!, $password: SecretString!) {
    signIn(email: $email, password: $password, cookie: true) { user { id } challenge { token expiresAt } }
  }
`)

export const CompleteSignIn = graphql(`
  mutation CompleteSignIn($challenge: SecretString!, $code: SecretString, $recoveryCode: SecretString) {
    completeSignIn(challenge: $challenge, code: $code, recoveryCode: $recoveryCode, cookie: true) { user { id } challenge { token expiresAt } }
  }
`)

export const ExchangeCode = graphql(`
  mutation ExchangeCode($code: SecretString!) {
    exchangeSignInCode(code: $code, cookie: true) { user { id } challenge { token expiresAt } }
  }
`)

export const Providers = graphql(`
  query Providers { signInProviders { name label startPath } }
`)

export const RequestReset = graphql(`
  mutation RequestReset($email: String!) { requestPasswordReset(email: $email) }
`)

export type Step = NonNullable<ResultOf<typeof SignInMutation>['signIn']>

const STARTED = 'muster.sign-in'

/** Remembers that this browser started a provider sign-in, and the destination afterwards. */
export function startProviderSignIn(next: string | undefined): string {
  const state = [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('')
  sessionStorage.setItem(STARTED, JSON.stringify({ state, next }))
  return state
}

export function takeProviderSignIn(): { state?: string; next?: string } {
  try {
    const started = JSON.parse(sessionStorage.getItem(STARTED) ?? '{}')
    sessionStorage.removeItem(STARTED)
    return started
  } catch {
    return {}
  }
}

/** A six-digit code is from the app, anything else a recovery code. */
export function codeVariables(typed: string): { code: string } | { recoveryCode: string } {
  const plain = typed.trim()
  return /^[0-9 ]{6,7}$/.test(plain) ? { code: plain.replace(' ', '') } : { recoveryCode: plain }
}

/** Accepts only the panel's own addresses: a link must not redirect users elsewhere after signing in. */
export function safeNext(next: string | undefined): string {
  if (!next?.startsWith('/') || next.startsWith('//') || next.includes('\\')) return '/'
  return next.startsWith('/sign-in') ? '/' : next
}

const REFUSED: Record<string, string> = {
  STATE_INVALID: 'That took too long, or you started in another browser. Try again.',
  PROVIDER_FAILED: 'The provider did not sign you in. Try again.',
  EMAIL_NOT_VERIFIED: 'The provider has not verified your e-mail address.',
  EMAIL_NOT_CONFIRMED:
    'There is an account with your e-mail address, but the address has not been confirmed. Sign in to that account with its password, confirm the address, and try again.',
  NO_ACCOUNT: 'You have no account and no invitation. Ask an administrator for an invitation.',
}

/** The error of a provider sign-in. The service's log has the reason under the reference. */
export function refusal(came: URLSearchParams): string {
  const text =
    new Map(Object.entries(REFUSED)).get(came.get('error') ?? '') ?? 'You were not signed in. Try again.'
  // Anyone can craft the address: show only well-formed references.
  const reference = /^[\w-]{1,64}$/.exec(came.get('reference') ?? '')?.[0]
  return reference
    ? `${text} If that does not help, tell the operator of this installation this reference: ${reference}`
    : text
}
