// What an invitation needs to be accepted, as the service says it when its link is used. Only the link's holder learns
// whether the address has an account: the page itself asks nothing before someone goes on. Pure, tested.
import type { CombinedError } from '@urql/core'
import { problemOf, wordsOf } from '../../api/errors'
import { fieldErrors } from '../../api/form-errors'

export type Step =
  /** Nothing is known yet. Anyone who is signed in as the invited person needs no more. */
  | { kind: 'ask' }
  /** The address has an account: its password, or its session. */
  | { kind: 'known'; email: string | null }
  /** It has none: a name and a password make one. */
  | { kind: 'new'; named: boolean }

export interface Answer {
  step: Step
  /** What is wrong with the whole. Asking for what was not asked before is not wrong. */
  problem: string | null
  /** What is wrong with a field that was shown. */
  errors: Record<string, string>
}

/** Where it goes on after a refusal. */
export function after(step: Step, error: CombinedError): Answer {
  const { code, details } = problemOf(error) ?? {}
  const refused = fieldErrors(error)
  if (code === 'SIGN_IN_FAILED') {
    const tried = step.kind === 'known'
    const problem = tried ? 'That is not the password of this account.' : null
    const email = typeof details?.email === 'string' ? details.email : null
    return { step: { kind: 'known', email }, problem, errors: {} }
  }
  if (code === 'VALIDATION_FAILED' && (refused.name || refused.password)) {
    // An account without a password yet has a name already.
    const named = step.kind === 'new' ? step.named : !refused.name
    return { step: { kind: 'new', named }, problem: null, errors: step.kind === 'new' ? refused : {} }
  }
  return { step, problem: wordsOf(error), errors: {} }
}
