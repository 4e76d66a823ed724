// Turns the service's errors into readable text, the same for every page.
import type { CombinedError } from '@urql/core'

/** One error. */
export interface Problem {
  /** The service's stable code, such as `CONFLICT`; `OFFLINE` without an answer. */
  code: string
  message: string
  /** The failed root field, by its name in the document. */
  field?: string
  /** Invalid values: a JSON pointer into the arguments, and the reason. */
  violations: { pointer: string; detail: string }[]
  details: Record<string, unknown>
  requestId?: string
}

/** All errors of an answer, in order. */
export function problemsOf(error: CombinedError | undefined): Problem[] {
  if (!error) return []
  if (error.networkError && error.graphQLErrors.length === 0) return [offline()]
  return error.graphQLErrors.map(({ message, path, extensions }) => ({
    code: textOf(extensions?.code) ?? 'INTERNAL',
    message,
    field: textOf(path?.[0]),
    violations: violationsOf(extensions?.errors),
    details: isRecord(extensions?.details) ? extensions.details : {},
    requestId: textOf(extensions?.requestId),
  }))
}

/** The first error, if any. */
export function problemOf(error: CombinedError | undefined): Problem | undefined {
  return problemsOf(error)[0]
}

/** One sentence for a toast or a form: what is wrong, and what to do. */
export function wordsOf(error: CombinedError | undefined): string {
  const problem = problemOf(error)
  return problem ? wordsOfProblem(problem) : 'Something went wrong. Try again.'
}

export function wordsOfProblem({ code, message, violations, details, requestId }: Problem): string {
  switch (code) {
    case 'OFFLINE':
      return 'The service did not answer. Check your connection and try again.'
    case 'RATE_LIMITED': {
      const wait = Number(details.retry_after)
      return wait > 0
        ? `Too many attempts. Try again in ${waitText(wait)}.`
        : 'Too many attempts. Wait a moment and try again.'
    }
    case 'INTERNAL':
      return `The service failed${requestId ? ` (request ${requestId})` : ''}. Try again; if it happens again, contact your administrator.`
    case 'UNAUTHENTICATED':
    case 'TOKEN_EXPIRED':
      return 'Your session has ended. Sign in again.'
    case 'VALIDATION_FAILED':
      return plain(violations[0]?.detail ?? message)
    default:
      return plain(message)
  }
}

/** Whether the session is over. */
export function isSignedOut(error: CombinedError | undefined): boolean {
  return problemsOf(error).some(({ code }) => code === 'UNAUTHENTICATED' || code === 'TOKEN_EXPIRED')
}

/** Whether a retry may help: the service did not answer, failed, or limited the rate. */
export function isRetryable(error: CombinedError | undefined): boolean {
  return ['OFFLINE', 'INTERNAL', 'RATE_LIMITED', 'UNAVAILABLE'].includes(problemOf(error)?.code ?? '')
}

/** A waiting time: "40 seconds", "3 minutes". */
function waitText(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} second${Math.ceil(seconds) === 1 ? '' : 's'}`
  return `${Math.ceil(seconds / 60)} minutes`
}

/**
 * Replaces the service's backticks for people. At the start of a sentence the quotes stay, because the quoted text must
 * not be capitalised.
 */
export function plain(text: string): string {
  return text
    .replace(/^`([^`]*)`/, '“$1”')
    .replace(/`([^`]*)`/g, '$1')
    .replace(/^./, (first) => first.toUpperCase())
}

function offline(): Problem {
  return { code: 'OFFLINE', message: 'The service did not answer.', violations: [], details: {} }
}

function violationsOf(value: unknown): Problem['violations'] {
  if (!Array.isArray(value)) return []
  return value.filter(isRecord).map(({ pointer, detail }) => ({
    pointer: textOf(pointer) ?? '',
    detail: textOf(detail) ?? 'This value is not accepted.',
  }))
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}
