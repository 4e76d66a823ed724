// An invitation, and the details that accepting it needs, as the service reports them when the link is used. Only then
// does the link's holder learn whether the address has an account. Pure, tested.
import type { CombinedError } from '@urql/core'
import { problemOf, wordsOf } from '../../api/errors'
import { fieldErrors } from '../../api/form-errors'
import { ROLE_NAMES, type Role } from '../members/roles'

export type Step =
  /** Not known yet. A user signed in as the invitee needs nothing more. */
  | { kind: 'ask' }
  /** The address has an account: it needs the password, or a session. */
  | { kind: 'known'; email: string | null }
  /** It has no account: a name and a password create one. */
  | { kind: 'new'; named: boolean }

export interface Offer {
  organization: string
  /** Null if the operator sent it. */
  inviter: string | null
  email: string
  role: Role
}

/** "Ada invites you (bob@example.com) to Lakeside as Viewer." */
export const offerText = ({ organization, inviter, email, role }: Offer) =>
  `${inviter ?? 'An administrator'} invites you (${email}) to ${organization} as ${ROLE_NAMES[role]}.`

export interface Answer {
  step: Step
  /** An error of the whole form. Asking for further details is not an error. */
  problem: string | null
  /** Errors of the visible fields. */
  errors: Record<string, string>
}

/** The next step after a refusal. */
export function nextStep(step: Step, error: CombinedError): Answer {
  const { code, details } = problemOf(error) ?? {}
  const refused = fieldErrors(error)
  if (code === 'SIGN_IN_FAILED') {
    const tried = step.kind === 'known'
    const problem = tried ? 'That is not the password of this account.' : null
    const email = typeof details?.email === 'string' ? details.email : null
    return { step: { kind: 'known', email }, problem, errors: {} }
  }
  if (code === 'VALIDATION_FAILED' && (refused.name || refused.password)) {
    // An account without a password already has a name.
    const named = step.kind === 'new' ? step.named : !refused.name
    return { step: { kind: 'new', named }, problem: null, errors: step.kind === 'new' ? refused : {} }
  }
  return { step, problem: wordsOf(error), errors: {} }
}
