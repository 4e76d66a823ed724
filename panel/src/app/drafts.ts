// Drafts: unsent texts, kept in this browser by person, organization and place. They outlast a reload and
// a closed tab. They go when they are sent, when the person signs out, and when another person signs in here.
const PREFIX = 'muster.draft.'

/** The id while no one is signed in. */
export const SIGNED_OUT = 0

let person = SIGNED_OUT
/** What storage did not take: kept until the page is closed. */
const memory = new Map<string, string>()

/** The owner of the drafts, including those that are only in memory. */
export const draftsOwner = (): number => person

const keyOf = (org: number, place: string) => `${PREFIX}${person}.${org}.${place}`

/** Sets the owner of the drafts, and forgets those of other users of this browser. At signing out: all. */
export function setDraftsOwner(user: number): void {
  if (user === person) return
  person = user
  forget((key) => !key.startsWith(`${PREFIX}${user}.`))
}

/** The draft of a place: `conversation.7`. */
export function draftOf(org: number, place: string): string {
  const key = keyOf(org, place)
  const known = memory.get(key)
  if (known !== undefined) return known
  try {
    return localStorage.getItem(key) ?? ''
  } catch {
    return ''
  }
}

/** Saves a draft; an empty text is forgotten. */
export function saveDraft(org: number, place: string, text: string): void {
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
