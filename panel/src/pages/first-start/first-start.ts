// What is wrong with the form of the first start, before it is sent and after. Pure, tested.
import type { CombinedError } from '@urql/core'
import { boundsOf, refusal } from '../../api/bounds'
import { problemOf, wordsOf } from '../../api/errors'
import { placeErrors } from '../../api/form-errors'

export interface Values {
  code: string
  name: string
  email: string
  password: string
  organizationName: string
}

export const EMPTY: Values = { code: '', name: '', email: '', password: '', organizationName: '' }

const FIELDS = ['code', 'name', 'email', 'password', 'organizationName'] as const

export interface Answer {
  /** Errors of the visible fields. */
  errors: Partial<Record<string, string>>
  /** An error of the whole form. */
  problem: string | null
}

/** The fields that the service would refuse. */
export function wrongFields(values: Values): Answer['errors'] {
  const found: Answer['errors'] = {}
  for (const field of FIELDS) {
    const wrong = refusal(values[field], boundsOf(`CompleteFirstStartInput.${field}`))
    if (wrong) found[field] = wrong
  }
  return found
}

/** What the service's refusal means. `isTaken`: another person was first. */
export function outcome(error: CombinedError | undefined): Answer & { isTaken: boolean } {
  const code = problemOf(error)?.code
  if (code === 'LINK_INVALID') return { isTaken: false, errors: { code: wordsOf(error) }, problem: null }
  return { isTaken: code === 'CONFLICT', ...placeErrors(error, FIELDS) }
}
