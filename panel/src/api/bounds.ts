// The input bounds from the schema, checked before sending.
import all from './bounds.json'

export interface Bounds {
  min?: number
  max?: number
  minLength?: number
  maxLength?: number
  maxItems?: number
  notBlank?: boolean
  line?: boolean
  /** Also a folder’s name. */
  folder?: boolean
  digits?: boolean
}

/** A place in the schema: `UpdateAgentInput.name`, or `changeName.name` for a mutation's argument. */
export type BoundsKey = keyof typeof all

/** The bounds of a place; none if only its type bounds it, as for an optional enum. */
export function boundsOf(place: BoundsKey): Bounds {
  return (all as Partial<Record<string, Bounds>>)[place] ?? {}
}

/** The invalid fields of an input, all at once: `refusalsOf('CreateSkillInput', input)`. Null is an omitted field. */
export function refusalsOf(input: string, values: Record<string, unknown>): Record<string, string> {
  const found = Object.entries(values).map(([name, value]) => [
    name,
    refusal(value, boundsOf(`${input}.${name}` as BoundsKey)),
  ])
  return Object.fromEntries(found.filter(([, text]) => text !== null))
}

/** Why a value is invalid although it is not complete: what more typing can't mend. */
export function refusalWhileTyping(value: unknown, bounds: Bounds): string | null {
  if (value === '' || Number.isNaN(value)) return null
  return refusal(value, { ...bounds, min: undefined, minLength: undefined, notBlank: undefined })
}

/** Why a value is invalid, in words; null if it is valid. */
export function refusal(value: unknown, bounds: Bounds): string | null {
  if (Array.isArray(value)) {
    if (bounds.maxItems !== undefined && value.length > bounds.maxItems)
      return `At most ${bounds.maxItems} entries.`
    const { maxItems: _, ...each } = bounds
    return value.map((item) => refusal(item, each)).find((found) => found !== null) ?? null
  }
  if (typeof value === 'number') return numberRefusal(value, bounds)
  if (typeof value === 'string') return textRefusal(value, bounds)
  return null
}

function numberRefusal(value: number, { min, max }: Bounds): string | null {
  if (Number.isNaN(value)) return 'Type a number.'
  if (min !== undefined && max !== undefined && (value < min || value > max)) return `From ${min} to ${max}.`
  if (min !== undefined && value < min) return `At least ${min}.`
  if (max !== undefined && value > max) return `At most ${max}.`
  return null
}

function textRefusal(
  value: string,
  { minLength, maxLength, notBlank, line, digits, folder }: Bounds,
): string | null {
  const length = [...value].length
  if (notBlank && value.trim() === '') return 'This can’t be empty.'
  if (minLength !== undefined && length < minLength) {
    return minLength === 1 ? 'This can’t be empty.' : `At least ${minLength} characters.`
  }
  if (maxLength !== undefined && length > maxLength)
    return `At most ${maxLength} characters; these are ${length}.`
  if ((line || folder) && /[\n\r]/.test(value)) return 'One line only.'
  if (folder && /[/\\]|^\s*\./.test(value)) return 'No slashes, and no dot at the beginning.'
  if (digits && !/^[0-9]+$/.test(value)) return 'Digits only.'
  return null
}
