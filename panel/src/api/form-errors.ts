// Validation errors per field, and conflicts. Separate from the other errors, because the first pages do without.
import type { CombinedError } from '@urql/core'
import { isRecord, plain, problemsOf, textOf, wordsOf } from './errors'

/** Errors by the last segment of their pointer: `/input/name` → `name`. */
export function fieldErrors(error: CombinedError | undefined): Record<string, string> {
  const found: Record<string, string> = {}
  for (const { violations } of problemsOf(error)) {
    for (const { pointer, detail } of violations) {
      const path = pointer.replace(/^\/(input\/)?/, '').replaceAll('/', '.')
      found[path] ??= plain(detail)
    }
  }
  return found
}

/**
 * The errors of a form's visible fields, and the rest to show below it: no error is lost.
 * An error inside a field (`repos.0`) shows at the field.
 */
export function placeErrors(
  error: CombinedError | undefined,
  fields: readonly string[],
): { errors: Record<string, string>; problem: string | null } {
  const errors: Record<string, string> = {}
  let left: string | null = null
  for (const [path, text] of Object.entries(fieldErrors(error))) {
    const field = fields.find((name) => path === name || path.startsWith(`${name}.`))
    if (field) errors[field] ??= text
    else left ??= text
  }
  const unsaid = error && Object.keys(errors).length === 0 && left === null
  return { errors, problem: unsaid ? wordsOf(error) : left }
}

/** The answer to a stale edit: `extensions.details` of CONFLICT. */
export interface Conflict<T> {
  revision: number
  changedBy: string | null
  changedAt: string | null
  current: T
}

export function conflictOf<T>(error: CombinedError | undefined): Conflict<T> | undefined {
  const problem = problemsOf(error).find(
    ({ code, details }) => code === 'CONFLICT' && isRecord(details.current),
  )
  if (!problem) return undefined
  const { revision, changed_by, changed_at, current } = problem.details
  return {
    revision: Number(revision),
    changedBy: isRecord(changed_by) ? (textOf(changed_by.name) ?? null) : null,
    changedAt: textOf(changed_at) ?? null,
    current: current as T,
  }
}
