// Search parameters. Everything a page shows has an address; unknown or invalid values are dropped, so that old or
// mistyped links still open. Lists are comma-separated: `?status=OPEN,PENDING`.

type Raw = Record<string, unknown>
type Reader<T> = (value: string | undefined) => T | undefined
type Read<S> = { [K in keyof S]?: S[K] extends Reader<infer T> ? T : never }

/** Builds a route's `validateSearch` from one reader per parameter. */
export function searchOf<S extends Record<string, Reader<unknown>>>(readers: S): (raw: Raw) => Read<S> {
  return (raw) => {
    const found: Record<string, unknown> = {}
    for (const [name, read] of Object.entries(readers)) {
      const value = read(textOf(raw[name]))
      if (value !== undefined) found[name] = value
    }
    return found as Read<S>
  }
}

/** Text, cut to 200 characters. */
export const text: Reader<string> = (value) => (value ? value.slice(0, 200) : undefined)
/** A record id. */
export const id: Reader<number> = (value) =>
  value && /^[1-9]\d{0,15}$/.test(value) ? Number(value) : undefined
export const flag: Reader<boolean> = (value) =>
  value === 'true' ? true : value === 'false' ? false : undefined
/** One of these words. */
export const one =
  <T extends string>(...words: readonly T[]): Reader<T> =>
  (value) =>
    words.find((word) => word === value)
/** Several of these words. */
export const some =
  <T extends string>(...words: readonly T[]): Reader<T[]> =>
  (value) => {
    const found = words.filter((word) => value?.split(',').includes(word))
    return found.length > 0 ? found : undefined
  }

/** Parses a search string into texts. */
export function parseSearch(search: string): Raw {
  return Object.fromEntries(new URLSearchParams(search))
}

/** Formats parameters as a search string, without empty ones. */
export function stringifySearch(search: Raw): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(search)) {
    const written = textOf(value)
    if (written) parameters.set(name, written)
  }
  const written = parameters.toString().replaceAll('%2C', ',')
  return written ? `?${written}` : ''
}

function textOf(value: unknown): string | undefined {
  if (Array.isArray(value)) return value.join(',')
  return value === undefined || value === null ? undefined : String(value)
}
