// What a form changes. It stays open when no answer comes, and may be sent again though the change was made.
import type { AnyVariables, CombinedError, TypedDocumentNode } from '@urql/core'
import { useRef } from 'react'
import { isSignedOut, isUnanswered, problemOf } from './errors'
import { type Act, type ActOptions, randomKey, useAct } from './use-act'

/**
 * Like `useAct`, but the same values sent again after a try without an answer are the same request: they can't count twice.
 * Not for what shows a secret once, which no second answer has, nor for what may be meant twice, such as Start and Stop.
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

/** Whether the change may have been made, or be made yet. */
const mayBeMade = (error: CombinedError | undefined) =>
  isUnanswered(error) ||
  // It says nothing about the try before.
  isSignedOut(error) ||
  ['IDEMPOTENCY_IN_PROGRESS', 'IDEMPOTENCY_IN_DOUBT'].includes(problemOf(error)?.code ?? '')
