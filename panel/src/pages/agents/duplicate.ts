// The settings and the name of an agent's duplicate. No React here, tested.

/** Parts of the record that an edit does not set, or that the creation sets already. */
const NO_EDIT = new Set([
  ...['__typename', 'id', 'revision', 'resolvedModel', 'modeProblem', 'notEnforced'],
  ...['name', 'role', 'description', 'instructions', 'modelOverride', 'serverId', 'imageId'],
  // The key itself can't be read, and these belong to it.
  ...['hasModelCredential', 'modelCredentialProvider', 'modelCredentialBaseUrl'],
])

/** Settings that need a permission of their own, so that each is an edit of its own. */
const APART = { network: ['networkPrivileged'], budget: ['monthlyBudgetMicro', 'budgetAction'] } as const

export interface Edit {
  what: string
  input: Record<string, unknown>
}

/** The edits that give a new agent the settings of another. Empty settings keep the service's defaults. */
export function editsLike(settings: Record<string, unknown>): Edit[] {
  const set = Object.entries(settings).filter(([name, value]) => !NO_EDIT.has(name) && value !== null)
  const usable = set.filter(([name, value]) => name !== 'credentialChoice' || value !== 'OWN')
  const apart = (name: string) =>
    Object.values(APART).some((names) => (names as readonly string[]).includes(name))
  const only = (names: readonly string[]) => usable.filter(([name]) => names.includes(name))
  return [
    { what: 'its other settings', input: Object.fromEntries(usable.filter(([name]) => !apart(name))) },
    { what: 'its network', input: Object.fromEntries(only(APART.network)) },
    { what: 'its budget', input: Object.fromEntries(only(APART.budget)) },
  ]
}

/** A name for the duplicate, within the bound of names. */
export function nameOfCopy(name: string, maxLength = 80): string {
  const end = ' copy'
  return [...name].slice(0, maxLength - end.length).join('') + end
}
