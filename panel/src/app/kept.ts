// What a person has typed and not sent, kept in this browser by person, organization and place. It outlasts a reload and
// a closed tab. It goes when it is sent, when the person signs out, and when somebody else signs in here.
const PREFIX = 'muster.kept.'

/** Nobody's id. */
export const NOBODY = 0

let person = NOBODY
/** What storage did not take: kept until the page is closed. */
const memory = new Map<string, string>()

/** Whose texts are kept, including those that are only in memory. */
export const keptFor = (): number => person

const keyOf = (org: number, place: string) => `${PREFIX}${person}.${org}.${place}`

/** Sets whose texts are kept, and forgets those of others who used this browser. At signing out: all. */
export function keepFor(user: number): void {
  if (user === person) return
  person = user
  forget((key) => !key.startsWith(`${PREFIX}${user}.`))
}

/** What was typed at a place: `conversation.7`. */
export function keptOf(org: number, place: string): string {
  const key = keyOf(org, place)
  const known = memory.get(key)
  if (known !== undefined) return known
  try {
    return localStorage.getItem(key) ?? ''
  } catch {
    return ''
  }
}

/** Keeps it; an empty text is forgotten. */
export function keep(org: number, place: string, text: string): void {
  const key = keyOf(org, place)
  memory.delete(key)
  try {
    if (text) localStorage.setItem(key, text)
    else localStorage.removeItem(key)
  } catch {
    memory.set(key, text)
  }
}

function forget(which: (key: string) => boolean): void {
  memory.clear()
  try {
    const keys = Object.keys(localStorage).filter((key) => key.startsWith(PREFIX) && which(key))
    for (const key of keys) localStorage.removeItem(key)
  } catch {
    // Without storage there is nothing to forget.
  }
}
