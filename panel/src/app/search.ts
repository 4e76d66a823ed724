// What a page's address may carry after its `?`. Everything that a page shows has an address; what is not understood is
// dropped, so that an old or mistyped link still opens. Lists are written with commas: `?status=OPEN,PENDING`.

type Raw = Record<string, unknown>
type Reader<T> = (value: string | undefined) => T | undefined
type Read<S> = { [K in keyof S]?: S[K] extends Reader<infer T> ? T : never }

/** Makes a route's `validateSearch` out of what each parameter is. */
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

/** Any text, at most 200 characters. */
export const text: Reader<string> = (value) => (value ? value.slice(0, 200) : undefined)
/** A record's id. */
export const id: Reader<number> = (value) =>
  value && /^[1-9]\d{0,15}$/.test(value) ? Number(value) : undefined
export const flag: Reader<boolean> = (value) =>
  value === 'true' ? true : value === 'false' ? false : undefined
/** One of a few words. */
export const one =
  <T extends string>(...words: readonly T[]): Reader<T> =>
  (value) =>
    words.find((word) => word === value)
/** Several of a few words. */
export const some =
  <T extends string>(...words: readonly T[]): Reader<T[]> =>
  (value) => {
    const found = words.filter((word) => value?.split(',').includes(word))
    return found.length > 0 ? found : undefined
  }

/** The search of an address as texts. */
export function parseSearch(search: string): Raw {
  return Object.fromEntries(new URLSearchParams(search))
}

/** Parameters as an address has them; what is empty is left out. */
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
