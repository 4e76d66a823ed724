// Drafts: unsent texts, stored in this browser by user, organization and place. They survive a reload and a closed tab,
// and are deleted when sent, at sign-out, and when another user signs in here.
const PREFIX = 'muster.draft.'

/** The owner id while signed out. */
export const SIGNED_OUT = 0

let person = SIGNED_OUT
/** Drafts that storage rejected, kept until the page closes. */
const memory = new Map<string, string>()

/** The owner of the drafts, including those only in memory. */
export const draftsOwner = (): number => person

const keyOf = (org: number, place: string) => `${PREFIX}${person}.${org}.${place}`

/** Sets the owner and deletes the drafts of this browser's other users. At sign-out: all drafts. */
export function setDraftsOwner(user: number): void {
  if (user === person) return
  person = user
  forget((key) => !key.startsWith(`${PREFIX}${user}.`))
}

/** The draft for a place: `conversation.7`. */
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

/** Saves a draft; empty text deletes it. */
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
    // Storage is blocked, so there is nothing to delete.
  }
}
