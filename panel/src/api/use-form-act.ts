// Mutations of forms. A form stays open if no answer arrives, and may be sent again although the change was made.
import type { AnyVariables, CombinedError, TypedDocumentNode } from '@urql/core'
import { useRef } from 'react'
import { isRetryable, isSignedOut, problemOf } from './errors'
import { type Act, type ActOptions, randomKey, useAct } from './use-act'

/**
 * Like `useAct`, but equal values sent again after an unanswered attempt are the same request: they can't count twice.
 * Not for secrets shown once, which a repeated answer omits, nor for actions that may be meant twice, such as Start and
 * Stop.
 */
export function useFormAct<Data, Variables extends AnyVariables>(
  document: TypedDocumentNode<Data, Variables>,
): Act<Data, Variables> {
  const act = useAct(document)
  const open = useRef<{ asked: string; key: string } | null>(null)
  const send = async (variables: Variables, options?: ActOptions) => {
    const asked = JSON.stringify(variables)
    const key = open.current?.asked === asked ? open.current.key : randomKey()
    const result = await act(variables, { ...options, key })
    open.current = mayBeMade(result.error) ? { asked, key } : null
    return result
  }
  return Object.assign(send, { pending: act.pending })
}

/** Whether the change may have been made, or may still be. */
const mayBeMade = (error: CombinedError | undefined) =>
  isRetryable(error) ||
  // This says nothing about the previous attempt.
  isSignedOut(error) ||
  ['IDEMPOTENCY_IN_PROGRESS', 'IDEMPOTENCY_IN_DOUBT'].includes(problemOf(error)?.code ?? '')
