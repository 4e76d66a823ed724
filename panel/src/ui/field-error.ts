// An error of a submitted form is settled once its field has another value, until the form is submitted again.
import { createContext, useContext, useState } from 'react'

/** How often the surrounding form was submitted; null outside, where each field decides about its own error. */
export const SubmissionContext = createContext<number | null>(null)

/** The error while the value is the one that it was found in. */
export function useOpenError(error: string | null | undefined, value: unknown): string | null | undefined {
  const submission = useContext(SubmissionContext)
  const now = JSON.stringify(value)
  const [found, setFound] = useState({ submission, error, value: now })
  const isNew = found.submission !== submission || found.error !== error
  if (isNew) setFound({ submission, error, value: now })
  return submission === null || isNew || found.value === now ? error : null
}
