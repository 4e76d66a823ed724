// Saved views of a list: which parts of an address they hold, and their list. Pure, tested.
import { parseSearch, stringifySearch } from './search'

export interface View {
  name: string
  /** Filters and order as in the address, without the `?`. */
  search: string
}

/** The maximum per list, so that all of them fit into the account's preferences. */
export const MAX_VIEWS = 30
export const MAX_NAME = 60

/** Open records and page numbers are transient, not part of a view. */
const PASSING = new Set(['peek', 'open', 'page', 'entry', 'turn'])

/** The view in an address: equal filters give equal text. */
export function viewOf(search: object): string {
  const lasting = Object.entries(search)
    .filter(([name]) => !PASSING.has(name))
    .sort(([a], [b]) => (a < b ? -1 : 1))
  return stringifySearch(Object.fromEntries(lasting)).slice(1)
}

export const searchOfView = (view: View) => parseSearch(view.search)

/** Why the name is rejected, or null. `now`: the view's current name. */
export function refusalOf(views: readonly View[], name: string, now?: string): string | null {
  const wanted = name.trim()
  if (!wanted) return 'This can’t be empty.'
  if ([...wanted].length > MAX_NAME) return `At most ${MAX_NAME} characters.`
  const taken = views.some((view) => view.name !== now && folded(view.name) === folded(wanted))
  if (taken) return 'Another view has this name.'
  return now === undefined && views.length >= MAX_VIEWS
    ? `At most ${MAX_VIEWS} views. Delete one first.`
    : null
}

/** The views sorted by name, with this one replacing the one named `now`. */
export function withView(views: readonly View[], view: View, now = view.name): View[] {
  const rest = views.filter(({ name }) => name !== now)
  return [...rest, { ...view, name: view.name.trim() }].sort((a, b) => a.name.localeCompare(b.name))
}

export const withoutView = (views: readonly View[], name: string): View[] =>
  views.filter((view) => view.name !== name)

/** Preferences may be any JSON: invalid views are dropped. */
export function readViews(json: unknown): View[] {
  if (!Array.isArray(json)) return []
  return json
    .filter((each) => typeof each?.name === 'string' && typeof each?.search === 'string')
    .map(({ name, search }) => ({ name, search }))
}

const folded = (name: string) => name.trim().toLocaleLowerCase()
