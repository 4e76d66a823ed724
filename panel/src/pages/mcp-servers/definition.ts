// Definitions of MCP tools, and their differences. No React here.
import type { Json } from '../../api/graphql'
import { differences, valueText } from '../agents/revision-diff'

export const TOO_LONG = 'This definition is too long to be shown. Look at it in the server itself.'

/** A tool's own description. */
export function descriptionOf(definition: Json): string | null {
  const isObject = typeof definition === 'object' && definition !== null && !Array.isArray(definition)
  const description = isObject ? definition.description : null
  return typeof description === 'string' && description !== '' ? description : null
}

/** The changed fields of a definition as texts. A new tool has no definition before. */
export function changesOf(before: Json, after: Json) {
  return differences(before, after).map((change) => ({
    ...change,
    before: valueText(change.before),
    after: valueText(change.after),
  }))
}
