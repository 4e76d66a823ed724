// The state of a form section: the user's edits, the stored values, and concurrent changes by others.
// Edits are never lost: not through a refusal, a conflict, or a record that changes underneath.
import type { CombinedError } from '@urql/core'
import { useCallback, useMemo, useRef, useState } from 'react'
import { type Bounds, type BoundsKey, boundsOf, refusal, refusalWhileTyping } from '../api/bounds'
import { wordsOf } from '../api/errors'
import { type Conflict, conflictOf, placeErrors } from '../api/form-errors'
import { say, sayProblem } from './toast-store'

export type Values = Record<string, unknown>

interface Options<V extends Values> {
  /** The stored record, with this section's fields only. */
  stored: V
  revision?: number
  /** Where the schema defines the bounds: `{ name: 'UpdateAgentInput.name' }`. */
  bounds?: Partial<Record<keyof V, BoundsKey>>
  /** Sends the changed fields. */
  save: (changes: Partial<V>, ifRevision: number | undefined) => Promise<{ error: CombinedError | undefined }>
  /** Extracts this section's fields from the record in a conflict. */
  ofCurrent?: (current: never) => V
  said?: string
}

export interface Section<V extends Values> {
  values: V
  set: <K extends keyof V>(name: K, value: V[K]) => void
  dirty: boolean
  saving: boolean
  save: () => Promise<boolean>
  discard: () => void
  /** The error of a field: from its bounds or from the service. */
  errorOf: (name: keyof V) => string | null
  /** Someone else's concurrent change of a field, if it differs from the edit. */
  theirsOf: (name: keyof V) => { value: unknown; by: string | null; take: () => void } | null
  conflict: Conflict<unknown> | null
  /** An error of the whole form, or of a field that is not shown. */
  problem: string | null
  /** Registers a visible field until the returned function is called. */
  place: (name: keyof V & string) => () => void
}

export function useSection<V extends Values>({
  stored,
  revision,
  bounds,
  save,
  ofCurrent,
  said = 'Saved',
}: Options<V>): Section<V> {
  const [mine, setMine] = useState<Partial<V>>({})
  const [asked, setAsked] = useState(false)
  const [saving, setSaving] = useState(false)
  const [error, setError] = useState<CombinedError | undefined>()
  const [conflict, setConflict] = useState<Conflict<unknown> | null>(null)
  // The stored values when the first edit began. The record may change underneath: the edit is still based on this
  // revision, which is sent to the service.
  const [begun, begin] = useState<{ stored: V; revision?: number } | null>(null)

  const theirs = conflict && ofCurrent ? ofCurrent(conflict.current as never) : null
  const base: V = theirs ?? stored
  const changes = useMemo(() => differing(mine, base), [mine, base])
  const dirty = Object.keys(changes).length > 0
  const refused = useMemo(() => refusals(changes, bounds, refusal), [changes, bounds])
  const half = useMemo(() => refusals(changes, bounds, refusalWhileTyping), [changes, bounds])
  const [places, setPlaces] = useState<readonly string[]>([])
  const place = useCallback((name: string) => {
    setPlaces((before) => [...before, name])
    return () => setPlaces((before) => before.filter((other) => other !== name))
  }, [])
  const { errors, problem } = useMemo(() => placeErrors(error, places), [error, places])
  const unseen = asked ? Object.keys(refused).find((name) => !places.includes(name)) : undefined

  /** Starts over without the `saved` edits. What was typed during the save stays, as an edit of `next`. */
  const restart = useCallback((saved?: Partial<V>, next: typeof begun = null) => {
    setMine((before) => (saved ? withoutSaved(before, saved) : {}))
    setError(undefined)
    setConflict(null)
    begin(next)
    setAsked(false)
  }, [])

  const discard = useCallback(() => restart(), [restart])

  /** Replaces `before` with `next`, even if someone changed another part of the record meanwhile. */
  const put = async (next: Partial<V>, before: Partial<V> | undefined, ifRevision: number | undefined) => {
    const { error: refusedBy } = await save(next, ifRevision)
    const stale = conflictOf<unknown>(refusedBy)
    const now = stale && ofCurrent?.(stale.current as never)
    const isOther = now && before && Object.keys(next).every((name) => same(now[name], before[name]))
    return stale && isOther ? (await save(next, stale.revision)).error : refusedBy
  }

  const latest = useRef({ stored, revision, mine })
  latest.current = { stored, revision, mine }
  /** Restores the previous name, unless someone has set a newer one. */
  const takeBack = async (given: Partial<V>, before: Partial<V>, sent: number) => {
    // An unmounted form has not seen its own edit: the service then refuses and returns the current record.
    const isKnown = same(latest.current.stored.name, given.name)
    const refusedBy = await put(before, given, isKnown ? latest.current.revision : sent)
    if (!refusedBy) say('Undone')
    else if (conflictOf(refusedBy)) sayProblem('Someone changed this meanwhile, so nothing was undone.')
    else sayProblem(wordsOf(refusedBy))
  }

  const send = async (): Promise<boolean> => {
    setAsked(true)
    if (saving || !dirty || Object.keys(refused).length > 0) return false
    setSaving(true)
    const sent = conflict?.revision ?? (begun ?? { revision }).revision
    const refusedBy = await put(changes, begun?.stored, sent)
    const stale = conflictOf<unknown>(refusedBy)
    setSaving(false)
    setError(stale ? undefined : refusedBy)
    if (stale) setConflict(stale)
    if (refusedBy) return false
    // The resulting revision is unknown. With the previous one the service reports a conflict, and `put` compares.
    const isLeft = Object.keys(withoutSaved(latest.current.mine, changes)).length > 0
    restart(changes, isLeft && ofCurrent ? { stored: { ...base, ...changes }, revision: sent } : null)
    const isRename = Object.keys(changes).join() === 'name' && ofCurrent && sent !== undefined
    const undo = () => takeBack(nameOnly<V>(changes.name), nameOnly<V>(base.name), sent ?? 0)
    say(said, isRename ? { undo } : {})
    return true
  }

  return {
    values: { ...base, ...mine },
    set: (name, value) => {
      if (ofCurrent) begin((before) => before ?? { stored, revision })
      setMine((before) => ({ ...before, [name]: value }))
    },
    dirty,
    saving,
    save: send,
    discard,
    errorOf: (name) => errors[String(name)] ?? (asked ? refused[name] : half[name]) ?? null,
    theirsOf: (name) => {
      if (
        !theirs ||
        !conflict ||
        same(theirs[name], (begun?.stored ?? stored)[name]) ||
        !(name in mine) ||
        same(mine[name], theirs[name])
      )
        return null
      return {
        value: theirs[name],
        by: conflict.changedBy,
        take: () => setMine((before) => omit(before, name)),
      }
    },
    conflict,
    problem: problem ?? (unseen ? (refused[unseen] ?? null) : null),
    place,
  }
}

/** A change of the name only, trimmed as the service stores it. */
const nameOnly = <V extends Values>(name: unknown) => ({ name: String(name).trim() }) as Values as Partial<V>

function refusals<V extends Values>(
  changes: Partial<V>,
  bounds: Partial<Record<keyof V, BoundsKey>> | undefined,
  check: (value: unknown, bounds: Bounds) => string | null,
): Partial<Record<keyof V, string>> {
  const found: Partial<Record<keyof V, string>> = {}
  for (const name of Object.keys(changes) as (keyof V)[]) {
    const place = bounds?.[name]
    const limits: Bounds = place ? boundsOf(place) : {}
    const text = check(changes[name], limits)
    if (text) found[name] = text
  }
  return found
}

/** The edits that differ from the stored values. */
export function differing<V extends Values>(mine: Partial<V>, stored: V): Partial<V> {
  const entries = Object.entries(mine).filter(([name, value]) => !same(value, stored[name]))
  return Object.fromEntries(entries) as Partial<V>
}

/** The edits that differ from the saved values. */
export function withoutSaved<V extends Values>(mine: Partial<V>, saved: Partial<V>): Partial<V> {
  const entries = Object.entries(mine).filter(
    ([name, value]) => !(name in saved) || !same(value, saved[name]),
  )
  return Object.fromEntries(entries) as Partial<V>
}

export function same(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true
  // NaN is not null, although JSON serialises both alike.
  if (Number.isNaN(a) || Number.isNaN(b)) return false
  return JSON.stringify(a ?? null) === JSON.stringify(b ?? null)
}

function omit<V extends Values>(values: Partial<V>, name: keyof V): Partial<V> {
  const { [name]: _, ...rest } = values
  return rest as Partial<V>
}
